"""The audit's file: rolled, closed to others, and never waited for."""

import json
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog.network.access import audit_file
from sparklog.network.access.audit_file import AuditFile, open_audit
from sparklog.network.clock import SystemClock
from tests.waiting import until


def lines_in(*paths: Path) -> list[str]:
    return [line for path in paths for line in path.read_text().splitlines()]


def written(path: Path, bytes_max: int = 1 << 20, files_max: int = 3) -> AuditFile:
    return AuditFile(path, bytes_max, files_max)


def test_lines_are_written_in_their_order_and_a_restart_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "broker-1.jsonl"
    for run in range(2):
        file = written(path)
        for number in range(100):
            file.write(f"{run}-{number}")
        file.close()
    assert lines_in(path) == [f"{run}-{number}" for run in range(2) for number in range(100)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_files_are_rolled_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "broker-1.jsonl"
    file = written(path, bytes_max=100, files_max=3)
    for number in range(200):
        line = f"{number:049d}"
        file.write(line)
        until(lambda: not file._lines, "the line to be taken")
    file.close()
    files = [tmp_path / name for name in ("broker-1.2.jsonl", "broker-1.1.jsonl", "broker-1.jsonl")]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    found = [int(line) for line in lines_in(*files)]
    assert found == list(range(found[0], 200))
    assert max(path.stat().st_size for path in files) < 400


class _HeldFile:
    """A disk that takes nothing until it is let go."""

    def __init__(self, file: object) -> None:
        self._file = file
        self.let_go = threading.Event()
        self.is_asked = threading.Event()

    def write(self, data: bytes) -> int:
        self.is_asked.set()
        assert self.let_go.wait(30)
        return self._file.write(data)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


def test_a_slow_disk_holds_nobody_and_lost_lines_are_counted(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(audit_file, "QUEUE_BYTES_MAX", 1_000)
    path = tmp_path / "broker-1.jsonl"
    file = written(path)
    held = file._file = _HeldFile(file._file)
    file.write("first")
    assert held.is_asked.wait(30)
    began = time.thread_time()
    for number in range(1_000):
        file.write(f"{number:099d}")  # ten fit
    assert time.thread_time() - began < 1
    held.let_go.set()
    file.close()
    found = lines_in(path)
    assert found[:11] == ["first", *(f"{number:099d}" for number in range(10))]
    assert [json.loads(line) for line in found[11:]] == [{"event": "lost lines", "count": 990}]


class _FullFile:
    """A disk that takes some bytes and is full then, until it is mended."""

    def __init__(self, file: object, left: int) -> None:
        self._file = file
        self.left = left

    def write(self, data: bytes) -> int:
        if not self.left:
            raise OSError(28, "No space left on device")
        count = self._file.write(bytes(data)[: self.left])
        self.left -= count
        return count

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


def test_a_full_disk_tears_one_line_and_no_later_one(tmp_path: Path, monkeypatch, caplog) -> None:
    monkeypatch.setattr(audit_file, "RETRY_S", 0.01)
    path = tmp_path / "broker-1.jsonl"
    file = written(path)
    full = file._file = _FullFile(file._file, 12)
    file.write("a line that is torn")
    until(lambda: "are lost and counted" in caplog.text, "the error")
    full.left = 10_000
    file.write("whole")
    file.close()
    found = lines_in(path)
    assert found[0] == "a line that "
    assert "whole" in found[1:]
    assert {"event": "lost lines", "count": 1} in [json.loads(one) for one in found[1:] if one != "whole"]
    assert caplog.text.count("are lost and counted") == 1


def test_without_the_setting_there_is_no_audit() -> None:
    assert open_audit(BrokerConfig.parse({}), "broker-1", SystemClock()).audit is None


def test_the_folder_is_made_closed_and_one_that_cannot_be_is_refused(tmp_path: Path) -> None:
    opened = open_audit(BrokerConfig.parse({"audit.log.dir": f"{tmp_path}/a/b"}), "broker-1", SystemClock())
    opened.close()
    assert os.listdir(tmp_path / "a/b") == ["broker-1.jsonl"]
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o700
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"audit\.log\.dir=.*/file/x: Not a directory; name a folder"):
        open_audit(BrokerConfig.parse({"audit.log.dir": f"{tmp_path}/file/x"}), "broker-1", SystemClock())
