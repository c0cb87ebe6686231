"""Logs take a bounded room: ours are rolled, and files that other programs append to are cut."""

import logging
import os
from pathlib import Path

import pytest

from sparklog_runtime.settings import log_files
from sparklog_runtime.settings.log_files import LOG_BYTES_MAX, LogFile, OutputFiles, cut_if_large
from tests.waiting import until


def line(number: int) -> logging.LogRecord:
    return logging.LogRecord("sparklog", logging.INFO, __file__, 1, f"line {number} \udcff", None, None)


def test_our_logs_are_rolled_and_the_last_three_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "LOG_BYTES_MAX", 100)
    handler = LogFile(tmp_path / "broker-1.log")
    for number in range(200):
        handler.handle(line(number))
    handler.close()
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["broker-1.log", "broker-1.log.1", "broker-1.log.2", "broker-1.log.3"]
    assert all(path.stat().st_size <= 100 for path in tmp_path.iterdir())
    assert "line 199" in (tmp_path / "broker-1.log").read_text()


def test_a_log_writes_nothing_until_its_folder_is_there(tmp_path: Path) -> None:
    """A start that is refused leaves nothing behind."""
    handler = LogFile(tmp_path / "logs" / "controller.log")
    handler.handle(line(1))
    assert not (tmp_path / "logs").exists()
    (tmp_path / "logs").mkdir()
    handler.handle(line(2))
    handler.close()
    assert (tmp_path / "logs" / "controller.log").read_text() == "line 2 ?\n"


def test_a_program_goes_on_at_the_beginning_of_a_file_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "spark-output.log"
    with path.open("ab", buffering=0) as written:
        written.write(b"x" * 11)
        cut_if_large(path, bytes_max=11)
        assert path.stat().st_size == 11
        cut_if_large(path, bytes_max=10)
        written.write(b"y")
    assert (path.read_bytes(), (tmp_path / "spark-output.log.1").read_bytes()) == (b"y", b"x" * 11)


def test_a_file_is_cut_though_there_is_no_room_for_what_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log_files.shutil, "copyfile", is_full)
    path = tmp_path / "zookeeper.log"
    path.write_bytes(b"x" * 11)
    cut_if_large(path, bytes_max=10)
    assert path.read_bytes() == b""


def test_files_are_cut_while_a_cluster_runs_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "LOOK_INTERVAL_S", 0.01)
    path = tmp_path / "zookeeper.log"
    files = OutputFiles([tmp_path / "never", path])
    files.start()
    path.touch()
    os.truncate(path, LOG_BYTES_MAX + 1)
    until(lambda: path.stat().st_size == 0, "the file is cut")
    files.stop()
    assert (tmp_path / "zookeeper.log.1").stat().st_size == LOG_BYTES_MAX + 1
