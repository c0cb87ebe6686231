"""A log beside a list that remembers everything, through restarts, crashes and torn tails."""

import logging
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.records.envelope import BatchHeader, split
from sparklog.storage.log_config import LogConfig
from sparklog.storage.segments.snapshots import producer_batch

CONFIG = LogConfig(segment_bytes=1_500, index_interval_bytes=200, segment_ms=50)
BATCH = st.tuples(
    st.integers(1, 4), st.integers(61, 400), st.integers(-20, 60), st.sampled_from([-1, -1, 1, 2])
)


class LogAgainstList(RuleBasedStateMachine):
    """``model`` holds every batch that the log should hold, in order; its last field is the log's start."""

    bench_type: type[Any]

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="sparklog-model-"))
        self.bench = self.bench_type(self.root)
        self.model: list[tuple[BatchHeader, bytes]] = []
        self.epoch = 0
        self.timestamp = 1_000
        self.log_start = 0
        self.sequences: dict[int, int] = {}

    @initialize()
    def open(self) -> None:
        self.log = self.bench.open(CONFIG)

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    @property
    def end(self) -> int:
        return self.model[-1][0].next_offset if self.model else self.base

    base = 0

    # ---- what happens to a log -----------------------------------------------------------------------------

    @rule(batches=st.lists(BATCH, min_size=1, max_size=6), hole=st.sampled_from([0, 0, 0, 3]))
    def append(self, batches: list[tuple[int, int, int, int]], hole: int) -> None:
        data, offset = b"", self.end + hole
        for count, size, later, producer in batches:
            self.timestamp += later
            sequence = self.sequences.get(producer, 0)
            self.sequences[producer] = sequence + count
            data += self.bench.batch(
                offset,
                count,
                size=size,
                epoch=self.epoch,
                timestamp=self.timestamp,
                producer=(producer, 0, sequence) if producer > 0 else (-1, -1, -1),
            )
            offset += count
        headers = split(data)
        self.log.append(data, headers)
        self.model += [(header, data[at : at + header.size_bytes]) for at, header in headers]

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1
        self.log.assign_epoch(self.epoch, self.log.log_end_offset)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log_start, self.log.log_end_offset + 2))
        self.log.truncate_to(offset)
        self.model = [one for one in self.model if one[0].last_offset < offset]
        self.settle_gap()

    @rule(offset=st.integers(0, 200))
    def start_anew(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset)
        self.model, self.base, self.log_start = [], offset, offset

    @rule(data=st.data())
    def raise_log_start(self, data: st.DataObject) -> None:
        self.log_start = data.draw(st.integers(self.log_start, self.log.log_end_offset))
        self.log.raise_log_start(self.log_start)
        self.log.delete_old_segments(self.log.log_end_offset)
        first = self.log.first_segment_base
        self.model = [one for one in self.model if one[0].base_offset >= first]
        self.base = max(self.base, first)

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        assert self.log.flush() == self.log.log_end_offset

    # ---- what happens to its process and its machine -------------------------------------------------------

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self.reopen(clean=True)

    @rule()
    def kill_and_start(self) -> None:
        self.reopen(clean=False)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def kill_inside_a_write(self, data: st.DataObject) -> None:
        """The last segment ends anywhere inside what was not synced: one write was not complete."""
        path = self.bench.segment_file(self.log.active_segment_base)
        last = self.model[-1][0]
        if not path.stat().st_size or last.last_offset < self.log.recovery_point:
            return
        cut = data.draw(st.integers(1, last.size_bytes))
        path.write_bytes(path.read_bytes()[:-cut])
        self.model.pop()
        self.reopen(clean=False)

    @precondition(lambda self: self.model)
    @rule(seed=st.integers(0, 2**32))
    def power_cut(self, seed: int) -> None:
        """From some unsynced batch on, anything: bytes missing, zeros, garbage."""
        path = self.bench.segment_file(self.log.active_segment_base)
        dice = random.Random(seed)
        synced = sum(
            header.size_bytes
            for header, _ in self.model
            if self.log.active_segment_base <= header.base_offset
            and header.last_offset < self.log.recovery_point
        )
        data = path.read_bytes()
        keep = dice.randint(synced, len(data))
        rest = [b"", b"\0" * (len(data) - keep), dice.randbytes(len(data) - keep)][seed % 3]
        path.write_bytes(data[:keep] + rest)
        position = 0
        survivors = []
        for header, batch in self.model:
            if header.base_offset >= self.log.active_segment_base:
                intact = path.read_bytes()[position : position + header.size_bytes] == batch
                position += header.size_bytes
                if not intact:
                    break
            survivors.append((header, batch))
        self.model = survivors
        self.reopen(clean=False, same_boot=False)

    def reopen(self, *, clean: bool, same_boot: bool = True) -> None:
        """As the log directory would open it. The recovery point that was written may be an older one."""
        self.log = self.bench.open(
            CONFIG,
            recovery_point=self.log.recovery_point,
            clean=clean,
            same_boot=same_boot,
            log_start=self.log_start,
        )
        assert self.log.corruption is None
        self.settle_gap()

    def settle_gap(self) -> None:
        """Where nothing is left, or a hole ends the log, the log itself says where it goes on."""
        if self.log.log_start_offset > self.end:
            self.model = []
        if not self.model:
            self.base = self.log.log_end_offset
        self.log_start = min(self.log_start, self.log.log_end_offset)
        assert self.log.log_end_offset == self.end

    # ---- what must hold ------------------------------------------------------------------------------------

    @invariant()
    def the_log_holds_what_the_list_holds(self) -> None:
        self.log.check_invariants()
        start = self.log.log_start_offset
        readable = [one for one in self.model if one[0].last_offset >= start]
        assert self.bench.read(self.log, start) == b"".join(batch for _, batch in readable)

    @invariant()
    def any_read_equals_a_linear_scan(self) -> None:
        if not self.model:
            return
        dice = random.Random(len(self.model) * 7 + self.end)
        for _ in range(4):
            offset = dice.randint(self.log.log_start_offset, self.log.log_end_offset)
            max_bytes, max_offset = dice.randint(0, 1_200), dice.randint(offset, offset + 12)
            expected, left = b"", max_bytes
            for header, batch in self.model:
                if header.last_offset < offset:
                    continue
                if header.last_offset >= max_offset or (expected and len(batch) > left):
                    break
                expected, left = expected + batch, left - len(batch)
                if left <= 0:
                    break
            assert self.bench.read(self.log, offset, max_bytes, max_offset) == expected

    @invariant()
    def epochs_and_producers_are_those_of_the_batches(self) -> None:
        epochs, producers = EpochHistory(), ProducerStates()
        for header, _ in self.model:
            epochs.assign(header.leader_epoch, header.base_offset)
            if header.has_producer:
                producers.apply(producer_batch(header), self.bench.clock.now_ms)
        kept = {
            pid: state for pid, state in self.log.producers.producers.items() if pid in producers.producers
        }
        for pid, state in producers.producers.items():
            assert list(kept[pid].batches)[-len(state.batches) :] == list(state.batches)
        for header, _ in self.model:
            if header.last_offset >= self.log.log_start_offset:
                assert self.log.epochs.epoch_at(header.last_offset) == header.leader_epoch
        if any(header.last_offset >= self.log.log_start_offset for header, _ in self.model):
            assert self.log.epochs.latest_epoch in (epochs.latest_epoch, self.epoch)


@pytest.mark.parametrize(("steps", "examples"), [(12, 120), pytest.param(50, 50, marks=pytest.mark.proof)])
def test_a_log_equals_a_list_through_everything_that_may_happen(
    make_bench: type[Any], caplog: pytest.LogCaptureFixture, steps: int, examples: int
) -> None:
    caplog.set_level(logging.CRITICAL, logger="sparklog.storage")
    machine = type("Machine", (LogAgainstList,), {"bench_type": make_bench})
    settled = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    run_state_machine_as_test(machine, settings=settled)
