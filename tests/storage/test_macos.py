"""What storage does where the system is macOS, acted out on whatever this is."""

import errno
import fcntl
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from sparklog.model.errors import LogDirectoryError
from sparklog.model.ids import TopicPartition
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_directory import LogDirectory
from tests.of_this_thread import of_this_thread

Bench = Any
FULL_SYNC = 51
TOPIC_ID = uuid.UUID(int=7)


class CaseBlindDisk(LocalDisk):
    """A file system that keeps the case of names, and does not heed it."""

    def exists(self, path: str) -> bool:
        folder, name = os.path.split(path)
        return os.path.isdir(folder) and name.lower() in [other.lower() for other in os.listdir(folder)]


def _full_sync(monkeypatch: pytest.MonkeyPatch, code: int) -> list[str]:
    """Give the system F_FULLFSYNC, which fails with ``code``; returns what is going to be called."""
    calls: list[str] = []

    def control(descriptor: int, command: int) -> int:
        assert command == FULL_SYNC
        calls.append("full sync")
        if code:
            raise OSError(code, os.strerror(code))
        return 0

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", FULL_SYNC, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", of_this_thread(fcntl.fcntl, control))
    monkeypatch.setattr(os, "fsync", of_this_thread(os.fsync, lambda descriptor: calls.append("fsync")))
    return calls


@pytest.mark.parametrize(
    ("code", "expected"), [(0, ["full sync"]), (errno.ENOTSUP, ["full sync", "fsync"])], ids=["disk", "share"]
)
def test_a_sync_empties_the_drives_own_cache_where_that_must_be_asked_for(
    code: int, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = LocalDisk().open(f"{tmp_path}/a", create=True)
    calls = _full_sync(monkeypatch, code)
    file.fsync()
    assert calls == expected


def test_a_full_sync_that_fails_is_not_hidden_by_a_lesser_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = LocalDisk().open(f"{tmp_path}/a", create=True)
    calls = _full_sync(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        file.fsync()
    assert calls == ["full sync"]


def test_topics_that_differ_in_case_only_are_refused_where_they_would_share_a_directory(
    tmp_path: Path, bench: Bench
) -> None:
    directory = LogDirectory.open(f"{tmp_path}/logs", 1, "c", CaseBlindDisk(), bench.clock, boot_id="b")
    config = LogConfig()
    directory.create_log(TopicPartition("Events", 0), TOPIC_ID, config)
    with pytest.raises(
        LogDirectoryError, match=r"under the name Events-0: this file system does not distinguish"
    ):
        directory.create_log(TopicPartition("events", 0), TOPIC_ID, config)
