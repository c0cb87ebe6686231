"""Checkpoints: Kafka's text, and what becomes of garbage."""

import logging
from pathlib import Path

import pytest

from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.ids import TopicPartition
from sparklog.storage.disk import LocalDisk
from sparklog.storage.small_files import checkpoints

DISK = LocalDisk()


def test_offsets_are_written_as_kafka_writes_them(tmp_path: Path) -> None:
    path = f"{tmp_path}/recovery-point-offset-checkpoint"
    offsets = {TopicPartition("b", 0): 7, TopicPartition("a.b-c", 11): 2**40}
    checkpoints.write_offsets(DISK, path, offsets)
    assert Path(path).read_text() == "0\n2\na.b-c 11 1099511627776\nb 0 7\n"
    assert checkpoints.read_offsets(DISK, path) == offsets


def test_epochs_are_written_as_kafka_writes_them(tmp_path: Path) -> None:
    path = f"{tmp_path}/leader-epoch-checkpoint"
    history = EpochHistory.of([(0, 0), (4, 120)])
    checkpoints.write_epochs(DISK, path, history)
    assert Path(path).read_text() == "0\n2\n0 0\n4 120\n"
    assert checkpoints.read_epochs(DISK, path) == history


def test_an_empty_checkpoint_is_a_checkpoint(tmp_path: Path) -> None:
    checkpoints.write_offsets(DISK, f"{tmp_path}/x", {})
    assert checkpoints.read_offsets(DISK, f"{tmp_path}/x") == {}
    checkpoints.write_epochs(DISK, f"{tmp_path}/y", EpochHistory())
    assert checkpoints.read_epochs(DISK, f"{tmp_path}/y") == EpochHistory()


def test_a_missing_file_is_nothing_to_warn_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert checkpoints.read_offsets(DISK, f"{tmp_path}/none") == {}
    assert checkpoints.read_epochs(DISK, f"{tmp_path}/none") is None
    assert not caplog.records


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0\n",
        b"1\n0\n",
        b"0\n2\na 0 1\n",
        b"0\n1\na 0 1\na 1 2\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 1 2\n",
        b"0\n1\na 0 -1\n",
        b"0\n1\na zero 1\n",
        b"\xff\xfe\x00\n",
        b"\0" * 64,
    ],
)
def test_garbage_is_ignored_with_a_warning_that_names_the_file(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "replication-offset-checkpoint"
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert checkpoints.read_offsets(DISK, str(path)) == {}
    assert str(path) in caplog.text


def test_epochs_that_do_not_grow_are_garbage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(b"0\n2\n4 0\n3 10\n")
    assert checkpoints.read_epochs(DISK, str(path)) is None
    assert "does not grow" in caplog.text
