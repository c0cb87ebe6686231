"""The index of aborted transactions: with its log through appends, cuts, crashes, retention and damage."""

import random
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.disks.disk import MountedDisk, SimulatedDisk
from sparklog.core.producers.producer_state import NO_OFFSET, handed_on, taken_over
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import build_marker
from sparklog.records.envelope import split, stamp
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.segments.transaction_index import AbortedEntries

Bench = Any
SMALL = LogConfig(segment_bytes=1_000, index_interval_bytes=150)
ALL = (0, 1 << 60)


def write(bench: Bench, log: Log, producer_id: int, count: int = 1) -> int:
    """Append a transactional batch, as a verified producer would; its base offset."""
    offset: int = log.log_end_offset
    bench.append(log, count, producer=(producer_id, 0, offset), transactional=True)
    return offset


def end(log: Log, producer_id: int, *, commits: bool = False) -> int:
    """Append a marker; its offset."""
    offset: int = log.log_end_offset
    marker = build_marker(TransactionEnd(commits, 0), producer_id=producer_id, producer_epoch=0, now_ms=1_000)
    stamp(marker, 0, offset, 0)
    log.append(marker, split(marker))
    log.check_invariants()
    return offset


def aborts(bench: Bench, log: Log, count: int) -> list[AbortedTransaction]:
    """Append so many aborted transactions, one after the other, each followed by a committed one."""
    made = []
    for nth in range(count):
        first = write(bench, log, 7)
        made.append(AbortedTransaction(7, first, end(log, 7), first + 2))
        write(bench, log, 100 + nth)
        end(log, 100 + nth, commits=True)
    return made


def entries_on_disk(bench: Bench) -> list[tuple[int, ...]]:
    """What is in the files, as Kafka's tools read them."""
    found = []
    for path in sorted((bench.directory / "events-3").glob("*.txnindex")):
        found += [entry[1:] for entry in struct.iter_unpack(">hqqqq", path.read_bytes())]
    return found


def test_an_aborted_transaction_is_in_the_file_when_its_marker_is_appended(bench: Bench) -> None:
    log = bench.open()
    first = write(bench, log, 7, count=3)
    assert not bench.segment_file(0, ".txnindex").exists()
    marker = end(log, 7)
    assert bench.segment_file(0, ".txnindex").read_bytes() == struct.pack(">hqqqq", 0, 7, first, marker, 4)
    write(bench, log, 8)
    end(log, 8, commits=True)
    assert entries_on_disk(bench) == [(7, first, marker, 4)]


def test_only_the_transactions_that_overlap_a_range_are_named(bench: Bench) -> None:
    log = bench.open(SMALL)
    made = aborts(bench, log, 12)
    assert len(log.segments) > 3
    for start in range(log.log_end_offset):
        for stop in range(start + 1, log.log_end_offset + 1):
            expected = [one for one in made if one.last_offset >= start and one.first_offset < stop]
            assert log.aborted_transactions(start, stop) == expected


def test_a_transaction_is_found_whose_marker_is_segments_later(bench: Bench) -> None:
    log = bench.open(SMALL)
    first = write(bench, log, 9)
    aborts(bench, log, 12)
    marker = end(log, 9)
    found = log.aborted_transactions(first, first + 1)
    assert [(one.producer_id, one.last_offset) for one in found] == [(9, marker)]


@pytest.mark.parametrize("cut", range(0, 49, 5))
def test_a_truncation_cuts_the_index_too_in_memory_and_on_disk(bench: Bench, cut: int) -> None:
    log = bench.open(SMALL)
    made = aborts(bench, log, 12)
    log.truncate_to(cut)
    kept = [one for one in made if one.last_offset < log.log_end_offset]
    assert log.aborted_transactions(*ALL) == kept
    assert entries_on_disk(bench) == kept
    first = write(bench, log, 55)
    marker = end(log, 55)
    assert [one[:3] for one in log.aborted_transactions(first, 1 << 60)] == [(55, first, marker)]


def test_after_sigkill_the_index_is_what_a_replay_says(bench: Bench) -> None:
    log = bench.open(SMALL)
    made = aborts(bench, log, 12)
    for path in (bench.directory / "events-3").glob("*.txnindex"):
        path.write_bytes(path.read_bytes()[:-5])
    again = bench.open(SMALL)
    assert again.aborted_transactions(*ALL) == made
    assert entries_on_disk(bench) == made


def test_a_clean_start_reads_the_files(bench: Bench) -> None:
    log = bench.open(SMALL)
    made = aborts(bench, log, 12)
    log.close()
    again = bench.open(SMALL, clean=True, recovery_point=log.recovery_point)
    assert again.aborted_transactions(*ALL) == made
    first = write(bench, again, 7)
    marker = end(again, 7)
    made.append(AbortedTransaction(7, first, marker, marker + 1))
    assert again.aborted_transactions(*ALL) == made
    assert entries_on_disk(bench) == made


def test_segments_that_retention_removes_take_their_indexes_along(bench: Bench) -> None:
    config = LogConfig(segment_bytes=1_000, index_interval_bytes=150, retention_bytes=2_000)
    log = bench.open(config)
    made = aborts(bench, log, 12)
    assert log.delete_old_segments(log.log_end_offset)
    start = log.segments[0].base_offset
    left = [one for one in made if one.last_offset >= start]
    assert left != made
    assert log.aborted_transactions(*ALL) == left
    assert entries_on_disk(bench) == left


def ended_behind_a_base(bench: Bench, log: Log) -> tuple[int, int]:
    """A transaction with one record that is aborted segments later: its offset, and a base in between."""
    first = write(bench, log, 7)
    while len(log.segments) < 3:
        bench.append(log)
    base: int = log.segments[1].base_offset
    end(log, 7)
    return first, base


@pytest.mark.bug(
    "B79",
    "words",
    "A replica that begins anew cannot name an aborted transaction whose records are all before its start.",
)
def test_a_replica_that_begins_anew_learns_of_what_was_open_there_and_has_ended_since(bench: Bench) -> None:
    """Seed 2009: it replays the marker, and names the transaction as its leader does."""
    log = bench.open(SMALL)
    first, base = ended_behind_a_base(bench, log)
    log.truncate_fully_and_start_at(base, taken_over(handed_on(log.producers_before(base))))
    marker = end(log, 7)
    assert log.aborted_transactions(*ALL) == [AbortedTransaction(7, first, marker, marker + 1)]


def test_where_no_segment_begins_or_its_snapshot_is_damaged_the_present_states_tell(bench: Bench) -> None:
    log = bench.open(SMALL)
    first, base = ended_behind_a_base(bench, log)
    assert log.producers_before(base).producers[7].open_since == first
    assert log.producers_before(base - 1).producers[7].open_since == NO_OFFSET
    bench.segment_file(base, ".snapshot").write_bytes(b"rotten")
    assert log.producers_before(base).producers[7].open_since == NO_OFFSET


def test_a_log_that_begins_anew_has_no_entry(bench: Bench) -> None:
    log = bench.open(SMALL)
    aborts(bench, log, 3)
    log.truncate_fully_and_start_at(500)
    assert log.aborted_transactions(*ALL) == []
    assert entries_on_disk(bench) == []


DAMAGES = {
    "cut": lambda data: data[:-1],
    "out of order": lambda data: data[34:68] + data[:34],
    "another version": lambda data: b"\0\x07" + data[2:],
    "an end before the beginning": lambda data: data[:10] + struct.pack(">q", 999) + data[18:],
    "zeros": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("use", ["read", "append", "truncate", "clean"])
def test_a_damaged_index_of_a_checked_log_is_made_anew(bench: Bench, damage: str, use: str) -> None:
    log = bench.open()
    made = aborts(bench, log, 4)
    log.close()
    path = bench.segment_file(0, ".txnindex")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    log = bench.open(clean=True, recovery_point=log.recovery_point)
    if use == "append":
        made += aborts(bench, log, 1)
    elif use == "truncate":
        log.truncate_to(made.pop().last_offset)
    elif use == "clean":
        log.roll()
        log.settle_aborted()
        assert entries_on_disk(bench) == made
    assert log.aborted_transactions(*ALL) == made
    assert entries_on_disk(bench) == made


def test_a_damaged_index_gets_each_of_several_markers_once_that_are_appended_together(bench: Bench) -> None:
    log = bench.open()
    made = aborts(bench, log, 2)
    firsts = [write(bench, log, producer_id) for producer_id in (50, 51)]
    log.close()
    bench.segment_file(0, ".txnindex").write_bytes(b"damaged")
    log = bench.open(clean=True, recovery_point=log.recovery_point)
    offset, markers = log.log_end_offset, bytearray()
    for nth, producer_id in enumerate((50, 51)):
        marker = build_marker(TransactionEnd(False, 0), producer_id=producer_id, producer_epoch=0, now_ms=1)
        stamp(marker, 0, offset + nth, 0)
        markers += marker
    log.append(markers, split(markers))
    made.append(AbortedTransaction(50, firsts[0], offset, firsts[1]))
    made.append(AbortedTransaction(51, firsts[1], offset + 1, offset + 2))
    assert log.aborted_transactions(*ALL) == made
    assert entries_on_disk(bench) == made


def test_an_open_transaction_outlives_a_restart_and_its_abort_names_where_it_began(bench: Bench) -> None:
    log = bench.open(SMALL)
    first = write(bench, log, 9)
    aborts(bench, log, 12)
    log.close()
    log = bench.open(SMALL, clean=True, recovery_point=log.recovery_point)
    assert log.producers.transactions.first_open() == first
    marker = end(log, 9)
    assert log.aborted_transactions(marker, marker + 1) == [AbortedTransaction(9, first, marker, marker + 1)]


def test_after_a_power_cut_no_entry_is_missing_and_none_is_stale(make_bench: Any) -> None:
    for seed in range(40):
        disk = SimulatedDisk()
        mounted = MountedDisk(disk, Machine())
        mounted.make_directory("/data")
        bench = make_bench(Path("/data"), disk=mounted)
        log = bench.open(SMALL)
        made = aborts(bench, log, 8)
        log.flush()
        point = log.recovery_point
        made += aborts(bench, log, 3)
        log.truncate_to(log.log_end_offset - 2)
        disk.cut_power(random.Random(seed))
        bench.disk = MountedDisk(disk, Machine("next"))
        again = bench.open(SMALL, recovery_point=point, same_boot=False)
        expected = [one for one in made if one.last_offset < again.log_end_offset]
        assert again.log_end_offset >= point
        assert again.aborted_transactions(*ALL) == expected


class Machine:
    """Stands in for a simulated process."""

    def __init__(self, name: str = "broker") -> None:
        self.name = name
        self.is_alive = True


entry_lists = st.lists(
    st.tuples(st.integers(0, 2**62), st.integers(0, 50), st.integers(1, 9), st.integers(0, 9)), max_size=20
)


@settings(deadline=None)
@given(entry_lists, st.integers(0, 80), st.integers(0, 80))
def test_entries_are_found_and_cut_as_a_list_would_be(raw: list[Any], start: int, stop: int) -> None:
    listed, last = [], 0
    for producer_id, back, step, ahead in raw:
        last += step
        listed.append(
            AbortedTransaction(producer_id, max(0, last - 1 - back), last, last + 1 - min(ahead, 1))
        )
    entries = AbortedEntries(listed)
    parsed = AbortedEntries.parse(0, entries.to_bytes())
    assert parsed is not None
    assert list(parsed) == listed == list(entries)
    found, _ = entries.find(start, stop)
    overlapping = [one for one in listed if one.last_offset >= start and one.first_offset < stop]
    assert [one for one in found if one in overlapping] == found
    entries.truncate(start)
    assert list(entries) == [one for one in listed if one.last_offset < start]
