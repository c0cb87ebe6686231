"""A real process that appends as fast as it can, a real SIGKILL, and what is there afterwards."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_directory import LogDirectory

pytestmark = pytest.mark.integration

CONFIG = LogConfig(segment_bytes=300_000, index_interval_bytes=4_096)
KILLS = 6

APPENDER = """
import sys, uuid
from sparklog.model.ids import TopicPartition
from sparklog.network.clock import SystemClock
from sparklog.records.envelope import build_envelope, split
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_directory import LogDirectory

directory = LogDirectory.open(sys.argv[1], 1, "c1", LocalDisk(), SystemClock(), boot_id="boot-1")
config = LogConfig(segment_bytes=300_000, index_interval_bytes=4_096)
tp = TopicPartition("t", 0)
logs = directory.load_logs(lambda topic: config)
log = logs.get(tp) or directory.create_log(tp, uuid.UUID(int=1), config)
assert log.corruption is None, log.corruption
epoch = log.epochs.latest_epoch + 1
log.assign_epoch(epoch, log.log_end_offset)
sequence = (log.producers.producers[5].last_sequence + 1) if 5 in log.producers.producers else 0
acknowledge = sys.stdout.buffer
for number in range(10**9):
    size = (number * 7919) % 60_000
    data = build_envelope(
        (str(log.log_end_offset) + ";").encode() * (size // 7),
        attributes=0, record_count=3, last_offset_delta=2,
        base_timestamp_ms=number, max_timestamp_ms=number, base_offset=log.log_end_offset, leader_epoch=epoch,
        producer_id=5, producer_epoch=0, base_sequence=sequence,
    )
    log.append(data, split(data))
    sequence += 3
    acknowledge.write(b"%d\\n" % log.log_end_offset)
    acknowledge.flush()
    if number % 50 == 49:
        log.flush()
        directory.checkpoint_recovery_points()
        directory.write_high_watermarks({tp: log.log_end_offset})
"""


def acknowledged_until_killed(directory: Path, acknowledgements: int) -> int:
    """Let the appender acknowledge at least so many appends, kill it, and return the last offset it told."""
    child = subprocess.Popen([sys.executable, "-c", APPENDER, str(directory)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child:
        for _ in range(acknowledgements):
            assert child.stdout.readline(), "the appender died by itself"
        child.kill()
        rest = child.stdout.read().rpartition(b"\n")[0]
        child.wait()
    assert child.returncode == -9
    return int(rest.splitlines()[-1]) if rest else 0


@pytest.mark.scenario("S1")
def test_no_acknowledged_append_is_lost_by_sigkill(bench: Any) -> None:
    logs = bench.directory / "logs"
    acknowledged = 0
    for kill in range(KILLS):
        acknowledged = max(acknowledged, acknowledged_until_killed(logs, 40 + kill * 17))
        directory = LogDirectory.open(str(logs), 1, "c1", bench.disk, bench.clock, boot_id="boot-1")
        assert directory.take_clean_marker() is None
        (log,) = directory.load_logs(lambda topic: CONFIG).values()
        log.check_invariants()
        assert log.corruption is None
        assert log.log_end_offset >= acknowledged
        headers = bench.headers(log)
        assert [header.base_offset for header in headers] == list(range(0, log.log_end_offset, 3))
        assert [header.base_sequence for header in headers] == list(range(0, log.log_end_offset, 3))
        assert log.producers.producers[5].last_sequence == log.log_end_offset - 1
        assert [epoch for epoch, _ in log.epochs.entries] == list(range(kill + 1))
        directory.close()
    assert len(os.listdir(logs / "t-0")) > KILLS


def test_a_process_killed_while_it_recovers_loses_nothing(bench: Any) -> None:
    """Recovery cuts, rebuilds and rewrites; dying anywhere in it must leave a log that recovers again."""
    logs = bench.directory / "logs"
    acknowledged = acknowledged_until_killed(logs, 200)
    tail = sorted((logs / "t-0").glob("*.log"))[-1]
    with tail.open("ab") as file:
        file.write(bench.batch(10**6, size=5_000)[:-7])
    for patience in range(0, 60, 4):
        child = subprocess.Popen([sys.executable, "-c", APPENDER, str(logs)], stdout=subprocess.PIPE)
        with child:
            try:
                child.wait(0.05 + patience / 100)
            except subprocess.TimeoutExpired:
                child.kill()
            assert child.stdout is not None
            told = child.stdout.read().rpartition(b"\n")[0].splitlines()
        acknowledged = max([acknowledged, *map(int, told)])
    directory = LogDirectory.open(str(logs), 1, "c1", bench.disk, bench.clock, boot_id="boot-1")
    (log,) = directory.load_logs(lambda topic: CONFIG).values()
    assert (log.corruption, log.log_end_offset >= acknowledged) == (None, True)
    assert [header.base_offset for header in bench.headers(log)] == list(range(0, log.log_end_offset, 3))
    directory.close()
