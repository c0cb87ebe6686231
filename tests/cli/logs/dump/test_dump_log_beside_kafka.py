"""Line by line the same as Apache Kafka's own DumpLogSegments, on files that our brokers' code wrote.

Kafka is looked for where the benchmarks keep it: `benchmarks/setup` fetches it there. Without it these tests
are reported as not run.
"""

import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.producers.producer_state import ProducerBatch, ProducerStates
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.wire.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from sparklog.wire.coordinator_records.group_offsets import GroupOffsetsCodec
from sparklog.wire.coordinator_records.transaction_state import TransactionStateCodec
from tests.wire.coordinator_records import golden, golden_transactions

pytestmark = [pytest.mark.integration, pytest.mark.proof, pytest.mark.timeout(240)]

Dump = Callable[..., Any]
FIRST = "00000000000000000000"
OWN_NOISE = ("log4j:",)
INVALID_TAIL = "invalid bytes at the end"


@pytest.fixture(scope="module")
def jars() -> Path:
    """Kafka's jars. SPARKLOG_BENCH_CACHE and XDG_CACHE_HOME say where, as they do to benchmarks/setup."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(os.environ.get("SPARKLOG_BENCH_CACHE") or f"{home}/sparklog-bench") / "kafka"
    if not any(folder.glob("kafka_2.13-*.jar")) or shutil.which("java") is None:
        pytest.skip(f"not run: Apache Kafka is not here ({folder}); benchmarks/setup fetches it")
    return folder


Both = Callable[..., tuple[list[str], list[str]]]


@pytest.fixture
def both(jars: Path, dump: Dump) -> Both:
    """What either tool says of the same files: lines of standard output, then of standard error sorted."""

    def run(files: Path | list[Path], *arguments: str) -> tuple[list[str], list[str]]:
        paths = files if isinstance(files, list) else [files]
        # With that variable, which the tests set, a JVM writes a note of it beside Kafka's errors.
        command = ["env", "-u", "JDK_JAVA_OPTIONS", "java", "-Xmx256m", "-cp", f"{jars}/*"]
        command += ["kafka.tools.DumpLogSegments"]
        command += ["--files", ",".join(str(path) for path in paths), *arguments]
        theirs = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        ours = dump(files, *arguments)
        return (
            [*_lines(theirs.stdout), "-- errors --", *sorted(_lines(theirs.stderr))],
            [*_lines(ours.out), "-- errors --", *sorted(_without_own(ours.err, ours.out))],
        )

    return run


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith(OWN_NOISE)]


def _without_own(err: str, out: str) -> list[str]:
    """Without our own list of corrupt bytes: Kafka has but its line on standard output."""
    lines = err.splitlines()
    if INVALID_TAIL not in out:
        return lines
    return [line for line in lines if not line.startswith(("Corrupt bytes in ", "  position: "))]


def test_batches_and_records_of_every_sort(both: Both, make: Any, batches: Any) -> None:
    first = make.records_log() / f"{FIRST}.log"
    log = make.log("compacted-0")
    make.append(log, batches.compacted(4), batches.marker(0, 9), batches.marker(2, 9), batches.records(3))
    log.close()
    second = make.root / "compacted-0" / f"{FIRST}.log"
    theirs, ours = both([first, second], "--deep-iteration", "--print-data-log")
    assert ours == theirs
    assert len(ours) > 370


def test_records_without_their_metadata(both: Both, make: Any) -> None:
    theirs, ours = both(make.records_log() / f"{FIRST}.log", "--print-data-log", "--skip-record-metadata")
    assert ours == theirs


def _group_of_consumers(version: int) -> tuple[bytes, bytes | None]:
    """A generation whose member speaks ``version`` of the consumers' protocol."""
    value = golden.GROUPS[3]
    partitions = (golden.OFFSET_KEY.topic_partition,)
    member = replace(
        value.members[0],
        subscription=encode_subscription(Subscription(("top",), b"\x07", partitions, 4, "r1"), version),
        assignment=encode_assignment(Assignment(partitions), version),
    )
    return GroupOffsetsCodec().encode(StateRecord(golden.GROUP_KEY, replace(value, members=(member,))))


def test_records_of_groups_in_every_version(both: Both, make: Any) -> None:
    records = [
        *((golden.OFFSET_KEY_BYTES, value) for value in (*golden.OFFSET_BYTES.values(), None)),
        *((golden.GROUP_KEY_BYTES, value) for value in (*golden.GROUP_BYTES.values(), None)),
        *(_group_of_consumers(version) for version in range(4)),
    ]
    log = make.log("__consumer_offsets-7")
    make.append(log, build_records_batch([Record(*one) for one in records], now_ms=1))
    log.close()
    theirs, ours = both(make.root / "__consumer_offsets-7" / f"{FIRST}.log", "--offsets-decoder")
    assert ours == theirs
    assert len(ours) == 3 + len(records) + 1


def test_records_of_transactions_in_every_version(both: Both, make: Any) -> None:
    """Our tags are skipped. Kafka prints partitions in the order of a hash table, so there is one."""
    value = replace(golden_transactions.OURS, topics=golden_transactions.OURS.topics[1:])
    ours_bytes = TransactionStateCodec().encode(StateRecord(golden_transactions.KEY, value)).value
    values = (
        ours_bytes,
        *golden_transactions.EMPTY_BYTES.values(),
        golden_transactions.COMPLETE_BYTES,
        None,
    )
    log = make.log("__transaction_state-7")
    records = [Record(golden_transactions.KEY_BYTES, one) for one in values]
    make.append(log, build_records_batch(records, now_ms=1))
    log.close()
    path = make.root / "__transaction_state-7" / f"{FIRST}.log"
    theirs, ours = both(path, "--transaction-log-decoder")
    assert ours == theirs
    assert len(ours) == 3 + len(records) + 1
    assert "partitions=[b-5]" in ours[3]


def test_segments_that_were_rolled_with_all_their_indexes(both: Both, make: Any) -> None:
    directory = make.records_log(segment_bytes=2_000)
    files = sorted(path for path in directory.iterdir() if path.suffix in (".log", ".index", ".timeindex"))
    assert len(files) > 9
    theirs, ours = both(files)
    assert ours == theirs
    theirs, ours = both(files, "--verify-index-only", "--max-bytes", "1000")
    assert ours == theirs


def test_the_sanity_check_of_indexes(both: Both, make: Any) -> None:
    directory = make.records_log()
    theirs, ours = both(
        [directory / f"{FIRST}.index", directory / f"{FIRST}.timeindex"], "--index-sanity-check"
    )
    assert ours == theirs


def test_indexes_that_contradict_the_segment(both: Both, make: Any) -> None:
    directory = make.records_log()
    index, times = directory / f"{FIRST}.index", directory / f"{FIRST}.timeindex"
    entries = list(struct.iter_unpack(">II", index.read_bytes()))
    entries[0] = (entries[0][0] - 1, entries[0][1])
    entries[2] = (entries[2][0] + 4, entries[2][1])
    index.write_bytes(b"".join(struct.pack(">II", *entry) for entry in entries))
    moments = list(struct.iter_unpack(">qI", times.read_bytes()))
    moments[1] = (moments[0][0], moments[1][1])
    moments[3] = (moments[3][0], moments[3][1] - 2)
    times.write_bytes(b"".join(struct.pack(">qI", *entry) for entry in moments))
    theirs, ours = both([index, times])
    assert ours == theirs
    assert len(ours) == 16 + 1 + 9


def test_a_torn_tail_and_a_flipped_bit(both: Both, make: Any) -> None:
    path = make.records_log() / f"{FIRST}.log"
    content = bytearray(path.read_bytes()[:-20])
    content[100] ^= 1
    path.write_bytes(content)
    theirs, ours = both(path)
    assert ours == theirs
    assert "isvalid: false" in ours[2]
    assert INVALID_TAIL in ours[-2]


def test_transaction_indexes_and_kafkas_own_snapshots(both: Both, tmp_path: Path) -> None:
    aborted = tmp_path / f"{FIRST}.txnindex"
    aborted.write_bytes(struct.pack(">hqqqq", 0, 9, 10, 20, 11) + struct.pack(">hqqqq", 0, 7, 15, 30, 21))
    producers = struct.pack(">qhiqiqiq", 9, 2, 29, 149, 9, 1002, 5, 140)
    producers += struct.pack(">qhiqiqiq", 10, 0, -1, -1, 0, -1, 6, -1)
    body = struct.pack(">i", 2) + producers
    snapshot = tmp_path / "00000000000000000150.snapshot"
    snapshot.write_bytes(struct.pack(">hI", 1, crc32c(body)) + body)
    theirs, ours = both([aborted, snapshot])
    assert ours == theirs
    assert len(ours) == 2 + 2 + 2 + 1


def test_kafka_reads_the_last_batch_of_each_producer_in_our_snapshots(both: Both, tmp_path: Path) -> None:
    states = ProducerStates()
    for n in range(14):
        states.apply(
            ProducerBatch(
                producer_id=9 + n % 2,
                producer_epoch=2,
                first_sequence=n * 10,
                last_sequence=n * 10 + 9,
                first_offset=100 + n * 10,
                last_offset=109 + n * 10,
                timestamp_ms=1_000 + n,
                is_transactional=n % 2 == 1,
            ),
            now_ms=5_000,
        )
    snapshot = tmp_path / "00000000000000000240.snapshot"
    snapshot.write_bytes(states.snapshot())
    theirs, ours = both(snapshot)
    assert sum("earlier batch" in line for line in ours) == 8
    assert [line.removesuffix(" lastSeenMs: 5000") for line in ours if not line.startswith("| ")] == theirs
    assert len(theirs) == 1 + 2 + 1


def test_kafka_reads_the_envelopes_of_arrow_batches(both: Both, make: Any, batches: Any) -> None:
    log = make.log("mixed-0")
    make.append(log, batches.records(5), batches.arrow(50), batches.arrow(50), batches.records(5))
    log.close()
    directory = make.root / "mixed-0"
    theirs, ours = both([directory / f"{FIRST}.log", directory / f"{FIRST}.index"])
    assert sum(line.endswith(" payload: arrow") for line in ours) == 2
    ours = [line.removesuffix(" payload: arrow") for line in ours if not line.startswith("+ ")]
    assert ours == theirs
