"""Opens a log directory as the next start would, and says what is not as it was promised."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crash_points.bench import (
    Bench,
    ManualClock,
    Row,
    batch_of,
    batches_in,
    config_of,
    open_directory,
    rows_of,
)
from crash_points.disk_states import Tree, read_tree
from crash_points.promises import Batch, Promises, State, required
from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.ids import TopicPartition
from sparklog.records.control import end_of_transaction
from sparklog.records.envelope import crc_matches, parse_header
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_directory import LogDirectory
from sparklog.storage.segments.snapshots import producer_batch
from sparklog.storage.small_files import checkpoints


@dataclass(frozen=True)
class Found:
    """What a log says after recovery."""

    batches: tuple[Batch, ...]
    start: int
    end: int
    epochs: tuple[tuple[int, int], ...]
    producers: tuple[tuple[int, Any], ...]
    topic_id: uuid.UUID
    rows: tuple[Row, ...]


def judge(
    root: Path, promises: Promises, boot_id: str, *, power_cut: bool, goes_on: bool = True
) -> list[str]:
    """Everything that is wrong with what a start finds; [] if all promises are kept.

    ``boot_id`` is that of the start; ``power_cut``: what was not synced may be gone. ``goes_on``: look, too,
    whether the logs can be written to and started with what was written.
    """
    try:
        return _judge(root, promises, boot_id, power_cut=power_cut, goes_on=goes_on)
    except Exception as error:  # noqa: BLE001 (whatever it is, a start must not raise it)
        frame = error.__traceback__
        while frame and frame.tb_next:
            frame = frame.tb_next
        where = f"{frame.tb_frame.f_code.co_filename.rpartition('/')[2]}:{frame.tb_lineno}" if frame else "?"
        return [f"raised {type(error).__name__}: {error} ({where})"]


def _judge(root: Path, promises: Promises, boot_id: str, *, power_cut: bool, goes_on: bool) -> list[str]:
    troubles: list[str] = []
    directory = open_directory(str(root), ManualClock(), boot_id)
    try:
        was_clean = directory.take_clean_marker() is not None
        if was_clean and not promises.may_be_clean:
            troubles.append("it passes for a clean stop")
        directory.load_logs(config_of, tell=lambda text: None)
        if directory.is_emptied and promises.after_kill and not power_cut:
            troubles.append("it looks as if somebody had taken its logs away")
        first = {str(tp): found_in(log) for tp, log in directory.logs.items()}
        troubles += _compare(directory, first, promises, power_cut=power_cut, was_clean=was_clean)
        legal = promises.after_power_cut if power_cut else promises.after_kill
        for name, log in directory.logs.items():
            starts = [state.start for state in legal.get(str(name), []) if state is not None]
            troubles += _sound(log, max(starts, default=0))
        troubles += _checkpoints(root, directory)
    finally:
        directory.close()
    if not troubles:
        troubles += _second_start(root, boot_id, first, was_clean=was_clean, goes_on=goes_on)
    return troubles


def found_in(log: Log) -> Found:
    log.check_invariants()
    batches = batches_in(log)
    for data in batches:
        assert crc_matches(data, 0, parse_header(data)), (log, batch_of(data))
    return Found(
        tuple(batch_of(data) for data in batches),
        int(log.log_start_offset),
        int(log.log_end_offset),
        tuple((int(epoch), int(start)) for epoch, start in log.epochs.entries),
        tuple(
            sorted(
                (int(pid), (state.epoch, *state.batches)) for pid, state in log.producers.producers.items()
            )
        ),
        log.topic_id,
        tuple(row for data in batches for row in rows_of(data)) if _is_table(log) else (),
    )


# ---- what was promised -------------------------------------------------------------------------------------


def _compare(
    directory: LogDirectory,
    found: dict[str, Found],
    promises: Promises,
    *,
    power_cut: bool,
    was_clean: bool,
) -> list[str]:
    legal_of = promises.after_power_cut if power_cut else promises.after_kill
    troubles = [f"{name} was never promised" for name in found if name not in legal_of]
    for name, legal in legal_of.items():
        states = [state for state in legal if state is not None]
        if name not in found:
            if None not in legal:
                troubles.append(f"{name} is gone")
            continue
        if not states:
            troubles.append(f"{name} was deleted and is there")
            continue
        if was_clean:
            states = states[-1:]
        if directory.logs[_tp(name)].corruption is not None:
            troubles.append(f"{name} is marked corrupt: {directory.logs[_tp(name)].corruption}")
        compare = _compare_rows if states[0].rows is not None else compare_batches
        must = [] if None in legal else required(states)
        troubles += [f"{name}: {trouble}" for trouble in compare(found[name], states, must)]
        if not power_cut and found[name].end == states[-1].end:
            troubles += [f"{name}: {trouble}" for trouble in compare_epochs(found[name], states)]
    return troubles


def compare_batches(found: Found, states: Sequence[State], must: Sequence[Batch]) -> list[str]:
    troubles = []
    missing = [batch for batch in must if batch not in found.batches]
    if missing:
        troubles.append(f"lost {missing}, found {found.start}..{found.end}")
    if found.batches:
        if not any(_is_part(found.batches, whole) for whole in _with_fronts(states)):
            troubles.append(f"invented or mixed: {found.batches} is part of none of {states}")
        if found.end != found.batches[-1].next_offset:
            troubles.append(f"ends at {found.end}, its last batch at {found.batches[-1].next_offset}")
    elif found.end not in {edge for state in states for edge in (state.start, state.end, 0)}:
        troubles.append(f"is empty and ends at {found.end}, as no state of it did")
    return troubles


def _with_fronts(states: Sequence[State]) -> Iterator[tuple[Batch, ...]]:
    """The states' batches, each behind what was in front of it before: a segment whose removal is not synced
    comes back, and what was appended since may be there already.
    """
    chain: tuple[Batch, ...] = ()
    end = -1
    for state in states:
        yield state.batches
        begin = len([batch for batch in chain if batch.next_offset <= state.start])
        shared = chain[begin:]
        goes_on = state.start <= end and state.batches[: len(shared)] == shared
        chain = chain[:begin] + state.batches if goes_on else state.batches
        end = state.end
        yield chain


def _is_part(found: Sequence[Batch], of: Sequence[Batch]) -> bool:
    if found[0] not in of:
        return False
    at = of.index(found[0])
    return tuple(of[at : at + len(found)]) == tuple(found)


def _compare_rows(found: Found, states: Sequence[State], must: Sequence[Batch]) -> list[str]:
    """Compaction may be anywhere between two states: what both have is there, and nothing that none has."""
    every = [set(state.rows or ()) for state in states]
    lost = sorted(set.intersection(*every) - set(found.rows)) if must or len(states) == 1 else []
    invented = sorted(set(found.rows).difference(*every))
    ends = {state.end for state in states}
    troubles = [f"lost {lost}"] if lost else []
    troubles += [f"invented {invented}"] if invented else []
    if len(ends) == 1 and found.end not in ends:
        troubles.append(f"ends at {found.end}, not at {ends}")
    if [row[0] for row in found.rows] != sorted({row[0] for row in found.rows}):
        troubles.append(f"has offsets twice or out of order: {[row[0] for row in found.rows]}")
    return troubles


def compare_epochs(found: Found, states: Sequence[State]) -> list[str]:
    """After SIGKILL the history is one that was, but for an epoch in which nothing was written yet, and for
    what lies before the start that the log had then: where that is not on disk yet, the batches tell it.
    """
    if not found.batches and not _history(found.epochs, found, found.start):
        return []  # as one that began anew
    starts = [max(found.start, state.start) for state in states]
    known = [_history(state.epochs, found, start) for state, start in zip(states, starts, strict=True)]
    if any(_history(found.epochs, found, start) == one for start, one in zip(starts, known, strict=True)):
        return []
    return [f"has epochs {list(found.epochs)}, not one of {known}"]


def _history(epochs: Sequence[tuple[int, int]], found: Found, start_offset: int) -> list[tuple[int, int]]:
    history = EpochHistory.of(epochs)
    history.trim_to(start_offset)
    return [
        (int(epoch), int(start)) for epoch, start in history.entries if start < found.end or not found.batches
    ]


# ---- what must hold whatever was promised ------------------------------------------------------------------


def _sound(log: Log, start_max: int) -> list[str]:
    """``start_max``: the log may have begun there; epochs before that may be forgotten."""
    troubles: list[str] = []
    epochs, producers = EpochHistory(), ProducerStates()
    stamps: list[tuple[int, int]] = []
    for data in batches_in(log):
        header = parse_header(data)
        epochs.assign(header.leader_epoch, header.base_offset)
        if header.last_offset >= start_max and log.epochs.epoch_at(header.last_offset) != header.leader_epoch:
            troubles.append(
                f"{log}: epoch of {header.last_offset} is {log.epochs.epoch_at(header.last_offset)}"
            )
        if header.has_producer:
            producers.apply(producer_batch(header), 0)
        if header.record_count:
            stamps.append((header.max_timestamp_ms, header.base_offset))
    for pid, state in producers.producers.items():
        known = log.producers.producers.get(pid)
        if known is None or list(known.batches)[-len(state.batches) :] != list(state.batches):
            troubles.append(f"{log}: producer {pid} is {known}, a replay says {state}")
    for pid, known in log.producers.producers.items():
        if any(batch.last_offset >= log.log_end_offset for batch in known.batches):
            troubles.append(f"{log}: producer {pid} is ahead of the log: {known}")
    troubles += _transactions(log)
    for stamp_ms, base_offset in stamps:
        expected = max(min(offset for stamp, offset in stamps if stamp >= stamp_ms), log.log_start_offset)
        answer = log.offset_for_timestamp(stamp_ms)
        if answer is None or answer[0] < expected or (answer[0] > expected and not _is_table(log)):
            troubles.append(f"{log}: offset for time {stamp_ms} is {answer}, the batch is at {base_offset}")
    return troubles


def _transactions(log: Log) -> list[str]:
    """Open and aborted transactions are those that the batches tell, as far as they begin in the log."""
    open_since: dict[int, int] = {}
    aborted: list[tuple[int, int, int]] = []
    batches = batches_in(log)
    for data in batches:
        header = parse_header(data)
        end = end_of_transaction(data, header) if header.is_control else None
        if end is not None:
            first = open_since.pop(header.producer_id, None)
            if first is not None and not end.is_commit:
                aborted.append((header.producer_id, first, header.base_offset))
        elif header.is_transactional:
            open_since.setdefault(header.producer_id, header.base_offset)
    begin = parse_header(batches[0]).base_offset if batches else 0
    told = log.aborted_transactions(int(log.log_start_offset), int(log.log_end_offset))
    known = [one[:3] for one in told if one.first_offset >= begin]
    troubles = [] if known == aborted else [f"{log}: aborted are {known}, the batches say {aborted}"]
    first_open, expected = log.producers.transactions.first_open(), min(open_since.values(), default=None)
    if first_open is None or first_open >= begin:
        troubles += [] if first_open == expected else [f"{log}: open since {first_open}, not {expected}"]
    return troubles


def _checkpoints(root: Path, directory: LogDirectory) -> list[str]:
    troubles = []
    for name in (checkpoints.RECOVERY_POINTS, checkpoints.CLEANED, checkpoints.LOG_STARTS):
        for tp, offset in checkpoints.read_offsets(LocalDisk(), f"{root}/{name}").items():
            log = directory.logs.get(tp)
            if log is not None and offset > log.log_end_offset:
                troubles.append(f"{name} says {offset} of {log}")
    return troubles


def _second_start(
    root: Path, boot_id: str, first: dict[str, Found], *, was_clean: bool, goes_on: bool
) -> list[str]:
    """A second recovery changes nothing; then the logs go on, and a third start finds all of it."""
    before = _comparable(read_tree(root))
    bench = Bench(str(root))
    bench.epoch, bench.timestamp = 100, 5_000_000
    bench.start(boot_id)
    second = {str(tp): found_in(log) for tp, log in bench.directory.logs.items()}
    if second != first:
        bench.directory.close()
        return [f"a second start finds {second}, the first found {first}"]
    if not was_clean and (after := _comparable(read_tree(root))) != before:
        bench.directory.close()
        names = sorted(name for name in {*before, *after} if before.get(name, b"?") != after.get(name, b"?"))
        return [f"a second start changes {names}"]
    if not goes_on:
        bench.directory.close()
        return []
    added = {}
    for tp, log in bench.directory.logs.items():
        data = bench.batch(int(log.log_end_offset))
        header = parse_header(data)
        log.append(data, [(0, header)])
        log.flush()
        added[str(tp)] = batch_of(data)
    bench.directory.checkpoint_recovery_points()
    bench.directory.close()
    bench.start(f"{boot_id} and then another")
    third = {str(tp): found_in(log) for tp, log in bench.directory.logs.items()}
    bench.directory.close()
    return [
        f"{name}: what was written and flushed after recovery is not there"
        for name, batch in added.items()
        if third[name].batches != (*first[name].batches, batch)
    ]


def _is_table(log: Log) -> bool:
    return log.topic_partition.topic.startswith("table")


def _comparable(tree: Tree) -> Tree:
    """Without what names the process, or says when producers were last heard of."""
    return {
        path: b"" if path.endswith(".snapshot") else data for path, data in tree.items() if path != ".lock"
    }


def _tp(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))
