"""Snapshots and the small files of a log directory; and that none of them is ever touched."""

import fcntl
import os
import struct
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.core.producers.producer_state import ProducerBatch, ProducerStates
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.storage.disk import LocalDisk
from sparklog.storage.small_files import checkpoints
from tests.of_this_thread import of_this_thread

Dump = Callable[..., Any]
FIRST = "00000000000000000000"


def states(batch_count: int) -> ProducerStates:
    known = ProducerStates()
    for n in range(batch_count):
        known.apply(
            ProducerBatch(
                producer_id=9,
                producer_epoch=2,
                first_sequence=n * 10,
                last_sequence=n * 10 + 9,
                first_offset=100 + n * 20,
                last_offset=100 + n * 20 + 9,
                timestamp_ms=1_000 + n,
                is_transactional=True,
            ),
            now_ms=77,
        )
    return known


def test_a_snapshot_shows_the_last_batch_as_kafka_does_and_then_the_others(
    dump: Dump, tmp_path: Path
) -> None:
    path = tmp_path / "00000000000000000150.snapshot"
    path.write_bytes(states(3).snapshot())
    ran = dump(path)
    assert (ran.status, ran.err) == (DONE, "")
    assert ran.lines == [
        f"Dumping {path}",
        "producerId: 9 producerEpoch: 2 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong[100] "
        "lastTimestamp: 1002 firstSequence: 20 lastSequence: 29 lastOffset: 149 offsetDelta: 9 "
        "timestamp: 1002 lastSeenMs: 77",
        "| earlier batch: firstSequence: 0 lastSequence: 9 lastOffset: 109 offsetDelta: 9 timestamp: 1000",
        "| earlier batch: firstSequence: 10 lastSequence: 19 lastOffset: 129 offsetDelta: 9 timestamp: 1001",
    ]
    (producer,) = dump(path, "--json").json["files"][0]["producers"]
    assert (producer["producer_id"], producer["current_txn_first_offset"]) == (9, 100)
    assert [batch["last_offset"] for batch in producer["batches"]] == [109, 129, 149]


def test_kafkas_own_snapshots_are_read_too(dump: Dump, tmp_path: Path) -> None:
    producers = struct.pack(">qhiqiqiq", 9, 2, 3, 149, 9, 1002, 5, -1)
    producers += struct.pack(">qhiqiqiq", 10, 0, -1, -1, 0, -1, 6, -1)
    body = struct.pack(">i", 2) + producers
    path = tmp_path / "00000000000000000150.snapshot"
    path.write_bytes(struct.pack(">hI", 1, crc32c(body)) + body)
    ran = dump(path)
    assert ran.status == DONE
    assert ran.lines[1:] == [
        "producerId: 9 producerEpoch: 2 coordinatorEpoch: 5 currentTxnFirstOffset: OptionalLong.empty "
        "lastTimestamp: 1002 firstSequence: 2147483642 lastSequence: 3 lastOffset: 149 offsetDelta: 9 "
        "timestamp: 1002",
        "producerId: 10 producerEpoch: 0 coordinatorEpoch: 6 currentTxnFirstOffset: OptionalLong.empty "
        "lastTimestamp: -1 ",
    ]


def test_a_damaged_snapshot_is_told(dump: Dump, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000150.snapshot"
    data = bytearray(states(2).snapshot())
    data[20] ^= 1
    path.write_bytes(data)
    ran = dump(path)
    assert (ran.status, ran.lines) == (FAILED, [f"Dumping {path}"])
    assert ran.err.startswith(f"Corruption in {path}\n  producer snapshot has CRC ")
    path.write_bytes(b"\0\1")
    assert dump(path).err.endswith("producer snapshot of 2 bytes is shorter than its header\n")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """What a broker writes beside its logs, written by the code that brokers write it with."""
    from sparklog.storage.small_files import meta_properties, partition_metadata
    from sparklog.storage.small_files.meta_properties import MetaProperties

    disk, name = LocalDisk(), str(tmp_path)
    offsets = {TopicPartition("orders", 0): 1500, TopicPartition("a_b.c-d", 12): 0}
    for checkpoint in (checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS, checkpoints.LOG_STARTS):
        checkpoints.write_offsets(disk, f"{name}/{checkpoint}", offsets)
    (tmp_path / checkpoints.EPOCHS).write_bytes(checkpoints.render([[0, 0], [3, 1500]]))
    (tmp_path / "corruption").write_bytes(checkpoints.render([[1498]]))
    topic_id = uuid.UUID(int=42)
    partition_metadata.write_topic_id(disk, name, topic_id)
    meta_properties.write(disk, name, MetaProperties("c-1", BrokerId(3), topic_id))
    (tmp_path / ".kafka_cleanshutdown").write_text('{"version": 0, "brokerEpoch": 17}')
    (tmp_path / "found-clean").write_text('{"version": 0, "brokerEpoch": 17, "bootId": "9f7a"}')
    (tmp_path / "boot-id").write_text("9f7a\n")
    (tmp_path / ".lock").write_text("4711\n")
    return tmp_path


def test_a_directory_is_refused_with_the_files_that_it_has(
    dump: Dump, directory: Path, tmp_path: Path
) -> None:
    for name in ("README", "00000000000000000000.log", "00000000000000000000.index"):
        (directory / name).touch()
    ran = dump([directory / "boot-id", directory])
    assert (ran.status, ran.out) == (WRONG_USAGE, "")
    assert f"--files {directory} is a directory; name the files in it that are meant: " in ran.err
    assert f"{directory}/00000000000000000000.index,{directory}/00000000000000000000.log," in ran.err
    assert ran.err.endswith(" (and 5 more)\n")
    assert "README" not in ran.err


def test_a_directory_with_nothing_to_dump_is_refused_too(dump: Dump, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    ran = dump(tmp_path)
    assert ran.status == WRONG_USAGE
    assert "is a directory, with nothing in it that can be dumped; name files" in ran.err


GOLDEN = {
    "recovery-point-offset-checkpoint": [
        "version: 0",
        "count: 2",
        "topic: a_b.c-d partition: 12 offset: 0",
        "topic: orders partition: 0 offset: 1500",
    ],
    "leader-epoch-checkpoint": [
        "version: 0",
        "count: 2",
        "epoch: 0 startOffset: 0",
        "epoch: 3 startOffset: 1500",
    ],
    "corruption": ["version: 0", "count: 1", "offset: 1498"],
    "partition.metadata": ["version: 0", "topic_id: AAAAAAAAAAAAAAAAAAAAKg"],
    "meta.properties": [
        "version: 0",
        "cluster.id: c-1",
        "broker.id: 3",
        "directory.id: AAAAAAAAAAAAAAAAAAAAKg",
    ],
    ".kafka_cleanshutdown": ["version: 0 brokerEpoch: 17"],
    "found-clean": ["version: 0 brokerEpoch: 17 bootId: 9f7a"],
    "boot-id": ["boot-id: 9f7a"],
    ".lock": ["process: 4711"],
}
GOLDEN["replication-offset-checkpoint"] = GOLDEN["recovery-point-offset-checkpoint"]
GOLDEN["log-start-offset-checkpoint"] = GOLDEN["recovery-point-offset-checkpoint"]


@pytest.mark.parametrize("name", GOLDEN)
def test_text_files_are_shown_line_by_line(name: str, dump: Dump, directory: Path) -> None:
    ran = dump(directory / name)
    assert (ran.status, ran.err) == (DONE, "")
    assert ran.lines == [f"Dumping {directory / name}", *GOLDEN[name]]


def test_text_files_as_json(dump: Dump, directory: Path) -> None:
    names = ["replication-offset-checkpoint", "meta.properties", ".kafka_cleanshutdown"]
    shown = dump([directory / name for name in names], "--json").json["files"]
    assert shown[0]["entries"][1] == {"topic": "orders", "partition": 0, "offset": 1500}
    assert (shown[0]["kind"], shown[0]["version"]) == ("replication-offset-checkpoint", 0)
    assert {name: value for row in shown[1]["properties"] for name, value in row.items()} == {
        "version": "0",
        "cluster_id": "c-1",
        "broker_id": "3",
        "directory_id": "AAAAAAAAAAAAAAAAAAAAKg",
    }
    assert shown[2]["properties"] == [{"version": 0, "broker_epoch": 17}]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("leader-epoch-checkpoint", "0\n3\n0 0\n3 1500\n", "2 entries, but the count says 3"),
        ("leader-epoch-checkpoint", "0\n2\n3 0\n2 1500\n", "a broker ignores it as a whole"),
        ("leader-epoch-checkpoint", "0\n1\n3 x\n", "line '3 x' is not epoch startOffset"),
        (
            "replication-offset-checkpoint",
            "0\n1\norders 0\n",
            "line 'orders 0' is not topic partition offset",
        ),
        ("replication-offset-checkpoint", "7\n0\n", "version 7, known is 0"),
        ("replication-offset-checkpoint", "", "0 lines; the version and the count alone need two"),
        ("replication-offset-checkpoint", "0\n1\n\udcff 0 1\n", "a broker ignores it as a whole"),
        ("partition.metadata", "version: 0\n", "does not say whose directory this is"),
        ("partition.metadata", "nonsense\n", "line 'nonsense' is not a name"),
        ("meta.properties", "version=0\nbroker.id=x\n", "does not say whose directory this is"),
        (".kafka_cleanshutdown", "{}", "not a mark of a clean stop: KeyError('version')"),
        ("found-clean", '{"version": 0, "brokerEpoch": 1}', "not a mark of a clean stop: KeyError('bootId')"),
    ],
)
def test_damaged_text_files_are_told(name: str, content: str, words: str, dump: Dump, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    ran = dump(tmp_path / name)
    assert ran.status == FAILED
    assert words in ran.err


def test_files_that_are_nothing_here_are_ignored_as_kafka_does(dump: Dump, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("milk")
    ran = dump(tmp_path / "notes")
    assert (ran.status, ran.lines) == (DONE, [f"Dumping {tmp_path / 'notes'}"])
    assert ran.err == f"sparklog: Ignoring unknown file {tmp_path / 'notes'}\n"


def test_a_file_that_is_not_there_fails_and_keeps_no_other_from_being_dumped(
    dump: Dump, directory: Path
) -> None:
    missing = directory / f"{FIRST}.log"
    ran = dump([missing, directory / "boot-id"])
    assert ran.status == FAILED
    assert ran.lines[-1] == "boot-id: 9f7a"
    assert f"Not dumped: {missing}\n  No such file or directory\n" in ran.err


def test_a_directory_named_like_a_file_is_refused(dump: Dump, tmp_path: Path) -> None:
    (tmp_path / f"{FIRST}.log").mkdir()
    ran = dump(tmp_path / f"{FIRST}.log")
    assert ran.status == WRONG_USAGE
    assert f"{FIRST}.log is a directory" in ran.err


def test_files_must_be_named(capfd: Any) -> None:
    from sparklog.cli.main import main

    assert main(["dump-log"]) == WRONG_USAGE
    assert "--files" in capfd.readouterr().err


def test_nothing_is_written_locked_or_opened_for_writing(
    dump: Dump, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = make.records_log()
    files = sorted(directory.iterdir())
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}
    opened, real_open = [], os.open

    def watched(path: str, flags: int, *rest: Any, **named: Any) -> int:
        opened.append(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))
        return real_open(path, flags, *rest, **named)

    def refuse(*_: object) -> None:
        raise AssertionError("a lock was asked for")

    monkeypatch.setattr(os, "open", of_this_thread(real_open, watched))
    monkeypatch.setattr(fcntl, "flock", of_this_thread(fcntl.flock, refuse))
    assert dump(files, "--print-data-log").status == DONE
    monkeypatch.undo()
    assert opened
    assert not any(opened)
    assert sorted(directory.iterdir()) == files
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files} == before


def test_a_log_that_is_being_written_can_be_dumped(dump: Dump, make: Any, batches: Any) -> None:
    log = make.log()
    make.append(log, batches.records(5))
    path = make.root / "orders-0" / f"{FIRST}.log"
    assert len(dump(path).lines) == 3
    make.append(log, batches.records(5))
    assert len(dump(path).lines) == 4
    log.check_invariants()
    log.close()
