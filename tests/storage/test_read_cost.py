"""What a read costs: a few envelopes, whatever the number of records and bytes."""

from collections import Counter
from typing import Any

import pytest

from sparklog.records import envelope
from sparklog.storage.disk import Buffer, File, LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.segments import scan
from sparklog.storage.segments.segment_search import SegmentSearch
from tests.of_this_thread import of_this_thread


class CountingFile:
    """A file that counts what is asked of it."""

    def __init__(self, file: File, counts: Counter[str]) -> None:
        self._file = file
        self._counts = counts

    @property
    def path(self) -> str:
        return self._file.path

    def fileno(self) -> int:
        return self._file.fileno()

    def size(self) -> int:
        return self._file.size()

    def pread(self, length: int, position: int) -> bytes:
        self._counts["reads"] += 1
        data = self._file.pread(length, position)
        self._counts["bytes read"] += len(data)
        return data

    def append(self, data: Buffer) -> None:
        self._counts["writes"] += 1
        self._file.append(data)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def fsync(self) -> None:
        self._counts["syncs"] += 1
        self._file.fsync()


class CountingDisk(LocalDisk):
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def open(self, path: str, *, create: bool = False) -> File:
        self.counts["opens"] += 1
        return CountingFile(super().open(path, create=create), self.counts)

    def write_atomically(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        self.counts["small files"] += 1
        super().write_atomically(path, data, sync=sync)


def counted(bench: Any) -> Counter[str]:
    bench.disk = CountingDisk()
    counts: Counter[str] = bench.disk.counts
    return counts


def test_an_append_is_one_write_and_nothing_else(bench: Any) -> None:
    counts = counted(bench)
    log = bench.open()
    bench.append(log)
    counts.clear()
    for epoch in range(100):
        bench.append(log, size=9_000, epoch=epoch // 40, producer=(5, 0, epoch))
    assert counts == {"writes": 100}


@pytest.mark.parametrize(("batch_bytes", "batches"), [(200, 20_000), (200_000, 50)])
def test_a_read_in_the_middle_looks_at_few_bytes(bench: Any, batch_bytes: int, batches: int) -> None:
    counts = counted(bench)
    log = bench.open()
    data = b"".join(bench.batch(number * 10, 10, size=batch_bytes) for number in range(batches))
    log.append(data, envelope.split(data))
    counts.clear()
    found = log.read(batches * 5 + 3, 1_000_000, batches * 9, at_least_one_batch=True)
    assert found.size_bytes > 500_000
    assert counts["reads"] <= 4
    assert counts["bytes read"] <= 3 * 4_096


def test_no_envelope_is_parsed_on_the_read_path(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log: Log = bench.open()
    data = b"".join(bench.batch(number, size=100) for number in range(5_000))
    log.append(data, envelope.split(data))

    def refuse(*_: object) -> None:
        raise AssertionError("the read path made a BatchHeader")

    monkeypatch.setattr(scan, "parse_header", of_this_thread(scan.parse_header, refuse))
    for offset in range(0, 5_000, 100):
        assert bench.read(log, offset, 50_000, offset + 300)


def test_a_clean_start_reads_no_batches(bench: Any) -> None:
    config = LogConfig(segment_bytes=2_000_000)
    log = bench.open(config)
    data = b"".join(bench.batch(number, size=1_000) for number in range(1_500))
    for _ in range(4):
        shift = log.log_end_offset
        bench.append_all(log, *(bench.batch(shift + number, size=1_000) for number in range(1_500)))
    assert len(data) == 1_500_000
    log.close()
    counts = counted(bench)
    bench.open(config, recovery_point=6_000, clean=True)
    assert counts["bytes read"] <= 3 * 4_096
    assert counts["opens"] <= 2


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("start", [1_000, 1_500])
def test_a_start_reads_no_trusted_batch_of_a_log_whose_epochs_begin_with_it(
    bench: Any, start: int, clean: bool
) -> None:
    config = LogConfig(segment_bytes=1_000_000, retention_ms=-1)
    log = bench.open(config)
    for epoch in range(3):
        shift = log.log_end_offset
        bench.append_all(log, *(bench.batch(shift + n, size=1_000, epoch=epoch) for n in range(1_000)))
    log.roll()
    log.raise_log_start(start)
    log.delete_old_segments(3_000)
    assert log.segment_bases == [1_000, 2_000, 3_000]
    log.close()
    counts = counted(bench)
    again = bench.open(config, recovery_point=3_000, clean=clean, log_start=start)
    assert again.epochs.entries == [(1, start), (2, 2_000)]
    assert counts["bytes read"] == 0


def test_recovery_reads_what_is_past_the_recovery_point_once(bench: Any) -> None:
    config = LogConfig(segment_bytes=1_000_000)
    log = bench.open(config)
    for shift in range(0, 3_000, 1_000):
        bench.append_all(log, *(bench.batch(shift + number, size=1_000) for number in range(1_000)))
    log.flush()
    counts = counted(bench)
    assert bench.open(config, recovery_point=2_000).log_end_offset == 3_000
    assert counts["bytes read"] <= 1_000_000


def test_a_read_with_nothing_to_read_searches_no_segment(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log = bench.open()
    bench.append(log)

    def search(*_: object, **__: object) -> None:
        raise AssertionError("followers ask this of every idle partition, thousands of times a second")

    monkeypatch.setattr(SegmentSearch, "read", of_this_thread(SegmentSearch.read, search))
    for end in (0, log.log_end_offset):
        read = log.read(end, 1 << 20, end, at_least_one_batch=True)
        assert (read.parts, read.size_bytes, read.next_offset) == ([], 0, end)
