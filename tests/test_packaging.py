"""The wheel: everything that a user needs, and nothing of the project's own tools."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"sparklog", "pyspark_sparklog", "sparklog_datasource", "sparklog_runtime"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True, timeout=120)
    (path,) = folder.glob("sparklog-*.whl")
    return zipfile.ZipFile(path)


def test_it_has_the_four_packages_each_at_the_top(wheel) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist() if ".dist-info" not in name}
    assert tops == PACKAGES


def test_it_has_nothing_of_the_proof(wheel) -> None:
    rooms = {room for name in wheel.namelist() for room in name.split("/")}
    assert rooms.isdisjoint({"tests", "proof", "simulation", "histories", "chaos", "crash_points", "fuzz"})
    assert "simulat" not in wheel.read(_entry_points(wheel)).decode()


def test_it_carries_the_demos_data_and_its_sources(wheel) -> None:
    for name in ("earthquakes.jsonl", "flights-200k.arrow", "README.md"):
        carried = wheel.read(f"sparklog_runtime/data/{name}")
        assert carried == (ROOT / "broker_runtime/sparklog_runtime/data" / name).read_bytes()


def test_it_carries_the_settings_files_of_which_conf_is_the_only_source(wheel) -> None:
    for source in (path for path in (ROOT / "conf").rglob("*") if path.is_file()):
        assert wheel.read(f"sparklog_runtime/{source.relative_to(ROOT)}") == source.read_bytes()


def test_it_carries_the_page_and_the_licence_of_what_it_draws_with(wheel) -> None:
    static = ROOT / "sparklog/web/static"
    parts = [part for part in static.rglob("*") if part.is_file()]
    assert len(parts) > 10
    for part in parts:
        assert wheel.read(part.relative_to(ROOT).as_posix()) == part.read_bytes()
    (licence,) = [
        name for name in wheel.namelist() if name.endswith("licenses/sparklog/web/static/uplot/LICENSE")
    ]
    assert b"Leon Sorokin" in wheel.read(licence)


def test_it_is_typed_and_names_its_commands(wheel) -> None:
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(wheel.namelist())
    text = wheel.read(_entry_points(wheel)).decode()
    for line in ("sparklog = sparklog.cli.main:main", "start = ", "demo = ", "conf = ", "submit = "):
        assert line in text


def _entry_points(wheel) -> str:
    (name,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    return name
