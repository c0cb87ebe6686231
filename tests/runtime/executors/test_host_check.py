"""Log directories that Spark would delete, or that nobody can write, are refused before they are opened."""

import re
from pathlib import Path

import pytest

from sparklog.model.errors import ConfigError
from sparklog_runtime.executors.host_check import refuse_log_dirs, spark_folders


def test_a_standalone_workers_folder_a_containers_and_their_scratch_space_are_sparks():
    executor = Path("/srv/spark-worker/app-20261125-0001/3")
    assert spark_folders(executor, {"SPARK_EXECUTOR_DIRS": "/scratch/a:/scratch/b"}) == [
        Path("/scratch/a"),
        Path("/scratch/b"),
        Path("/srv/spark-worker"),
    ]
    container = Path("/yarn/container_1")
    variables = {"CONTAINER_ID": "container_1", "LOCAL_DIRS": "/l1,/l2"}
    assert spark_folders(container, variables) == [Path("/l1"), Path("/l2"), container]
    assert spark_folders(Path("/home/me"), {}) == []


def test_a_log_directory_in_a_folder_of_sparks_is_refused_also_behind_a_link(tmp_path):
    work, link = tmp_path / "work", tmp_path / "link"
    work.mkdir()
    link.symlink_to(work)
    words = f"host h: log.dirs names {link}/broker-1, but Spark deletes what is in {work}: name a directory"
    with pytest.raises(ConfigError, match=re.escape(words)):
        refuse_log_dirs([f"{tmp_path}/fine", f"{link}/broker-1"], [work], "h")
    assert list(work.iterdir()) == []


def test_directories_that_cannot_be_written_are_named_with_host_and_remedy(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        ConfigError, match=r"host h: no directory of log\.dirs.*file/x: Not a directory: make"
    ):
        refuse_log_dirs([f"{tmp_path}/file/x"], [], "h")


def test_one_directory_that_can_be_written_is_enough(tmp_path):
    (tmp_path / "file").touch()
    refuse_log_dirs([f"{tmp_path}/file/x", f"{tmp_path}/new"], [], "h")
    assert list((tmp_path / "new").iterdir()) == []
