"""Where the latest batches begin: as the file has it, after whatever happened to the log."""

import errno
import logging
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from sparklog.records.envelope import split
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.segments.latest_batches import REMEMBERED_MIN, LatestBatches
from sparklog.storage.segments.scan import Outline
from sparklog.storage.segments.segment import Segment
from sparklog.storage.segments.swap import Swap
from tests.of_this_thread import of_this_thread

CONFIG = LogConfig(segment_bytes=40_000, index_interval_bytes=700)


def run_of(lengths: list[tuple[int, int, int]]) -> list[Outline]:
    """Batches by their bytes, their records, and the hole before each."""
    found, position, offset = [], 5_000, 300
    for size_bytes, count, hole in lengths:
        offset += hole
        found.append(Outline(position, position + size_bytes, offset, offset + count - 1))
        position, offset = position + size_bytes, offset + count
    return found


LENGTHS = st.lists(
    st.tuples(st.integers(61, 90), st.integers(1, 3), st.sampled_from([0, 0, 2])), min_size=1, max_size=300
)


def test_offsets_that_no_remembered_batch_decides_are_not_answered() -> None:
    assert LatestBatches().find(0) is None
    latest = LatestBatches()
    latest.note(5_000, 100, 300, 309)
    assert latest.find(299) is None
    assert latest.find(300) == latest.find(309) == Outline(5_000, 5_100, 300, 309)
    assert latest.find(310) is None
    assert latest.end_of_read(4_900, 10_000, 305) is None


@given(lengths=LENGTHS, seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_at_least_the_last_64_batches_are_found_as_a_walk_finds_them(
    lengths: list[tuple[int, int, int]], seed: int
) -> None:
    batches, latest, dice = run_of(lengths), LatestBatches(), random.Random(seed)
    for one in batches:
        latest.note(one.position, one.end_position - one.position, one.base_offset, one.last_offset)
    kept = batches[-len(latest) :]
    assert min(REMEMBERED_MIN, len(batches)) <= len(latest) <= 2 * REMEMBERED_MIN
    for offset in range(kept[0].base_offset, kept[-1].last_offset + 1):
        assert latest.find(offset) == next(one for one in batches if one.last_offset >= offset)
    for _ in range(50):
        start = dice.choice(kept)
        limit = start.position + dice.randint(0, 3_000)
        offset_max = start.base_offset + dice.randint(0, 40)
        walked = (one for one in batches if one.position >= start.position)
        end = next((one for one in walked if one.end_position > limit or one.last_offset >= offset_max), None)
        expected = None if end is None else (end.position, end.base_offset)
        assert latest.end_of_read(start.position, limit, offset_max) == expected


# ---- in a log ----------------------------------------------------------------------------------------------


@contextmanager
def forgotten(segment: Segment) -> Iterator[None]:
    latest, segment._latest = segment._latest, None
    yield
    segment._latest = latest


def assert_equals_the_file(segment: Segment, dice: random.Random) -> None:
    """Every place within the segment is the one that a search of its file finds."""
    end = segment.end_offset
    near = [*range(max(segment.base_offset - 1, end - 20), end + 2)]
    for offset in near + [dice.randint(segment.base_offset, end) for _ in range(20)]:
        found, until, limits = segment.locate(offset), None, (0, 0)
        if found is not None:
            limits = dice.randint(0, 1_500), found.last_offset + dice.randint(1, 12)
            until = segment.end_of_read(found, *limits)
        with forgotten(segment):
            assert segment.locate(offset) == found
            assert found is None or segment.end_of_read(found, *limits) == until


APPENDED = st.lists(
    st.tuples(st.integers(61, 400), st.integers(1, 3), st.sampled_from([0, 0, 2])), min_size=1, max_size=40
)


class LogWithMemory(RuleBasedStateMachine):
    """A log through everything that may change its active segment."""

    bench_type: type[Any]

    @initialize()
    def open(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="sparklog-latest-"))
        self.bench = self.bench_type(self.root)
        self.log: Log = self.bench.open(CONFIG)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)

    def batches(self, lengths: list[tuple[int, int, int]]) -> bytes:
        data, offset = b"", self.log.log_end_offset
        for size_bytes, count, hole in lengths:
            data += self.bench.batch(offset + hole, count, size=size_bytes)
            offset += hole + count
        return data

    @rule(lengths=APPENDED, times=st.sampled_from([1, 1, 3]))
    def append(self, lengths: list[tuple[int, int, int]], times: int) -> None:
        for _ in range(times):
            data = self.batches(lengths)
            self.log.append(data, split(data))

    @rule(lengths=APPENDED, written=st.integers(0, 200))
    def fail_to_append(self, lengths: list[tuple[int, int, int]], written: int) -> None:
        """The disk is full after a few bytes."""
        real, data = os.pwrite, self.batches(lengths)
        calls: list[int] = []

        def full(descriptor: int, rest: bytes, position: int) -> int:
            calls.append(position)
            if len(calls) > 1 or not written:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(descriptor, rest[: min(written, len(data) - 1)], position)

        os.pwrite = of_this_thread(real, full)
        try:
            with pytest.raises(OSError, match="No space"):
                self.log.append(data, split(data))
        finally:
            os.pwrite = real

    @rule(data=st.data(), near_the_end=st.booleans())
    def truncate(self, data: st.DataObject, near_the_end: bool) -> None:
        end = self.log.log_end_offset
        least = max(self.log.log_start_offset, end - 100) if near_the_end else self.log.log_start_offset
        self.log.truncate_to(data.draw(st.integers(least, end + 2)))

    @rule(offset=st.integers(0, 500))
    def start_anew(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset)

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        if is_clean:
            self.log.close()
        recovery_point = self.log.recovery_point
        self.log = self.bench.open(CONFIG, recovery_point=recovery_point, clean=is_clean)

    @rule()
    def rebuild_an_index(self) -> None:
        self.log.segments[-1]._rebuild_indexes("a test says so")

    @rule(seed=st.integers(0, 2**32))
    def compact(self, seed: int) -> None:
        """The first segment, if it is sealed, loses some of its batches, but not the last one."""
        source, dice = self.log.segments[0], random.Random(seed)
        if source is self.log.segments[-1] or not source.size_bytes:
            return
        bench, base = self.bench, source.base_offset
        fresh = Segment(bench.disk, source.directory, base, CONFIG.index_interval_bytes, bench.clock.now_ms)
        fresh.forget_batches()
        fresh.aborted.forget()
        whole, data = source.file.pread(source.size_bytes, 0), b""
        batches = split(whole)
        for position, header in batches:
            if header is batches[-1][1] or dice.random() < 0.5:
                fresh.note_batch(len(data), header)
                data += whole[position : position + header.size_bytes]
        output = bench.disk.open(f"{source.directory}/{base:020d}.log.cleaned", create=True)
        output.append(data)
        output.fsync()
        fresh.end_offset = source.end_offset
        fresh.save_aside(".cleaned")
        swap = Swap((source,), fresh, self.log.generation, bench.disk)
        assert self.log.begin_swap(swap)
        assert self.log.finish_swap(swap)

    @invariant()
    def memory_and_file_say_the_same(self) -> None:
        if not hasattr(self, "log"):
            return
        self.log.check_invariants()
        dice = random.Random(self.log.log_end_offset)
        for segment in self.log.segments:
            if segment._latest is not None:
                assert segment is self.log.segments[-1], "a sealed segment forgets"
                assert_equals_the_file(segment, dice)


@pytest.mark.parametrize(("steps", "examples"), [(15, 30), pytest.param(40, 100, marks=pytest.mark.proof)])
def test_what_is_remembered_is_what_the_file_has_through_everything_that_may_happen(
    make_bench: type[Any], caplog: pytest.LogCaptureFixture, steps: int, examples: int
) -> None:
    caplog.set_level(logging.CRITICAL, logger="sparklog.storage")
    machine = type("Machine", (LogWithMemory,), {"bench_type": make_bench})
    settled = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    run_state_machine_as_test(machine, settings=settled)


def test_a_read_near_the_end_reads_no_envelope(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log = bench.open()
    for _ in range(200):
        bench.append(log, 3)

    def refuse(*_: object) -> bytes:
        raise AssertionError("the file was searched")

    monkeypatch.setattr(os, "pread", of_this_thread(os.pread, refuse))
    for offset in range(600 - 3 * REMEMBERED_MIN, 600):
        for offset_max in (600, 599, offset + 3):
            read = log.read(offset, 250, offset_max, at_least_one_batch=True)
            assert read.next_offset <= offset_max
    with pytest.raises(AssertionError, match="was searched"):
        log.read(10, 250, 600, at_least_one_batch=True)
