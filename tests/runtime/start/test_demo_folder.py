"""Which folders a demo may empty."""

import pytest

from sparklog.model.errors import SparklogError
from sparklog_runtime.start.cluster_folders import Layout, RootInUse, RootLock
from sparklog_runtime.start.demo_folder import MARKER, keep_from_demos, start_command, take_demo_folder


def test_a_new_folder_is_made_and_one_of_an_earlier_demo_is_emptied(tmp_path):
    folder = tmp_path / "a/demo"
    take_demo_folder(folder)
    (folder / "broker-1").mkdir()
    (folder / "broker-1/data").write_text("old")
    take_demo_folder(folder)
    assert {path.name for path in folder.iterdir()} <= {MARKER, "lock"}


def test_what_was_kept_is_never_emptied_and_the_way_on_is_told(tmp_path):
    folder = tmp_path / "my demo"
    take_demo_folder(folder)
    RootLock(Layout.at(folder)).release()
    (folder / "data").write_text("mine")
    keep_from_demos(folder)
    with pytest.raises(SparklogError, match=r"--root '.*my demo'"):
        take_demo_folder(folder)
    assert (folder / "data").read_text() == "mine"
    assert start_command(folder) == f"sparklog start --brokers 3 --root '{folder}'"


def test_after_the_start_that_a_demo_suggests_the_next_demo_names_the_ways_on(tmp_path):
    folder = tmp_path / "my demo"
    take_demo_folder(folder)
    (tmp_path / "my demo-2").touch()
    with RootLock(Layout.at(folder)):  # as the start does
        keep_from_demos(folder)
        with pytest.raises(RootInUse, match="stop that cluster first"):
            take_demo_folder(folder)
    with pytest.raises(SparklogError) as refused:
        take_demo_folder(folder)
    for way in (f"sparklog demo --root '{folder}-3'", f"rm -r '{folder}'", start_command(folder)):
        assert way in str(refused.value)


def test_what_is_not_a_clusters_is_never_proposed_to_be_removed(tmp_path):
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(SparklogError, match="no demo made it") as refused:
        take_demo_folder(tmp_path)
    assert f"choose another folder: sparklog demo --root {tmp_path}-2" in str(refused.value)
    assert "rm " not in str(refused.value)


def test_a_folder_in_which_a_demo_runs_is_left_alone(tmp_path):
    take_demo_folder(tmp_path)
    (tmp_path / "data").write_text("running")
    with RootLock(Layout.at(tmp_path)), pytest.raises(RootInUse):
        take_demo_folder(tmp_path)
    assert (tmp_path / "data").read_text() == "running"
