"""Writes a history: one line for each thing, as it happens, from any thread.

    with Writer(path) as writer:
        op = writer.send("p-1", "t", 0, "t/0/p-1#0/0", acks="all", session="p-1#0", seq=0, idempotent=True)
        ...
        writer.sent("p-1", op, offset=12)      # or writer.failed, or writer.unknown

Lines reach the file at once, so that what a killed process has seen is known.
"""

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

VERSION: Final = 1
RECORDS_MAX: Final = 10_000
"""Longer reads are written in parts."""
Cell = tuple[int, int, str]
"""Offset, the id of a column, the text of what that row holds there."""
ERROR_MAX: Final = 1_024


class Writer:
    """One file. ``clock`` gives nanoseconds of CLOCK_MONOTONIC."""

    def __init__(self, path: Path, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._clock = clock
        self._lock = threading.Lock()
        self._ops = itertools.count(1)
        self.event("harness", "history", version=VERSION)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def line(self, process: str, kind: str, what: str, /, **fields: Any) -> None:
        """Any line; fields that are None are left out."""
        given = {name: value for name, value in fields.items() if value is not None}
        with self._lock:  # the clock is read inside: lines must be in the order of time
            head = {"t_ns": self._clock(), "process": process, "type": kind, "f": what}
            self._file.write(json.dumps(head | given, ensure_ascii=False, separators=(",", ":")) + "\n")

    # ---- producers -----------------------------------------------------------------------------------------

    def send(
        self,
        process: str,
        topic: str,
        partition: int,
        value: str,
        *,
        acks: Literal["all", 1, 0],
        session: str,
        seq: int,
        idempotent: bool,
        key: str | None = None,
        tombstone: bool = False,
        transaction: str | None = None,
        source: str | None = None,
        in_flight: int | None = None,
        cells: Mapping[int, str] | None = None,
    ) -> int:
        """Before the record may leave; the number is for what becomes of it. ``source``: the value of the
        record of which a pipeline made it. ``in_flight``: how many requests its producer may have under way.
        ``cells``: what the columns of a typed row hold, but for nulls.
        """
        op = next(self._ops)
        self.line(
            process,
            "invoke",
            "send",
            op=op,
            topic=topic,
            partition=partition,
            value=value,
            acks=acks,
            session=session,
            seq=seq,
            idempotent=idempotent,
            key=key,
            tombstone=tombstone or None,
            transaction=transaction,
            source=source,
            in_flight=in_flight,
            cells=None if cells is None else list(cells.items()),
        )
        return op

    def sent(
        self, process: str, op: int, *, offset: int | None = None, leader_epoch: int | None = None
    ) -> None:
        self.line(process, "ok", "send", op=op, offset=offset, leader_epoch=leader_epoch)

    def failed(self, process: str, op: int, error: object, *, what: str = "send") -> None:
        """It is certain that nothing was appended, now or later. A time-out never is."""
        self.line(process, "fail", what, op=op, error=str(error)[:ERROR_MAX])

    def unknown(self, process: str, op: int, error: object, *, what: str = "send") -> None:
        self.line(process, "info", what, op=op, error=str(error)[:ERROR_MAX])

    def timed_out(self, process: str, session: str, waited_ms: int) -> None:
        """A request of this session had no answer for so long, and its records are sent again."""
        self.event(process, "timed_out", session=session, waited_ms=waited_ms)

    # ---- consumers -----------------------------------------------------------------------------------------

    def poll(self, process: str, topic: str, partition: int) -> int:
        """Before a poll; optional, but a poll without it is taken to have begun when it was answered."""
        op = next(self._ops)
        self.line(process, "invoke", "poll", op=op, topic=topic, partition=partition)
        return op

    def polled(
        self,
        process: str,
        topic: str,
        partition: int,
        start: int,
        records: Sequence[tuple[int, str]],
        *,
        op: int | None = None,
        leader_epoch: int | None = None,
        epochs: Sequence[tuple[int, int]] = (),
        isolation: Literal["committed", "uncommitted"] | None = None,
        columns: Sequence[int] | None = None,
        cells: Sequence[Cell] = (),
    ) -> None:
        """What a poll from position ``start`` gave; ``epochs``: from which offset on it was appended in which
        leader epoch. Of typed rows ``columns`` are those that were given, ``cells`` what they held.
        """
        self.line(
            process,
            "ok",
            "poll",
            op=op,
            topic=topic,
            partition=partition,
            records=records,
            leader_epoch=leader_epoch,
            epochs=epochs or None,
            isolation=isolation,
            columns=columns,
            cells=cells or None,
            **{"from": start},
        )

    def seek(self, process: str, topic: str, partition: int, offset: int) -> None:
        self.line(process, "ok", "seek", topic=topic, partition=partition, offset=offset)

    def end(self, process: str, topic: str, partition: int) -> int:
        """Before ListOffsets(latest)."""
        op = next(self._ops)
        self.line(process, "invoke", "end", op=op, topic=topic, partition=partition)
        return op

    def ended(self, process: str, op: int, offset: int, *, leader_epoch: int | None = None) -> None:
        self.line(process, "ok", "end", op=op, offset=offset, leader_epoch=leader_epoch)

    # ---- transactions --------------------------------------------------------------------------------------

    def init(self, process: str, transactional_id: str, session: str) -> int:
        """Before InitProducerId; ``happened``, ``failed`` or ``unknown`` with ``what="init"`` follows."""
        op = next(self._ops)
        self.line(process, "invoke", "init", op=op, transactional_id=transactional_id, session=session)
        return op

    def finish(self, process: str, transaction: str, *, commit: bool, write: str | None = None) -> int:
        """Before EndTxn; ``happened``, ``failed`` or ``unknown`` with ``what="finish"`` follows.

        ``write``: the version of an atomic write at which the transaction is a try.
        """
        op = next(self._ops)
        how = "commit" if commit else "abort"
        self.line(process, "invoke", "finish", op=op, transaction=transaction, how=how, write=write)
        return op

    def happened(self, process: str, op: int, *, what: Literal["init", "finish"]) -> None:
        self.line(process, "ok", what, op=op)

    def written(self, process: str, write: str) -> None:
        """The driver of an atomic write was told that this version is committed, whoever did it."""
        self.line(process, "ok", "written", write=write)

    # ---- groups --------------------------------------------------------------------------------------------

    def commit(self, process: str, group: str, topic: str, partition: int, value: str) -> int:
        """Before an OffsetCommit; ``done``, ``failed`` or ``unknown`` with ``what="commit"`` follows."""
        op = next(self._ops)
        self.line(
            process, "invoke", "commit", op=op, group=group, topic=topic, partition=partition, value=value
        )
        return op

    def done(self, process: str, op: int) -> None:
        self.line(process, "ok", "commit", op=op)

    def committed(self, process: str, group: str, topic: str, partition: int) -> int:
        """Before an OffsetFetch."""
        op = next(self._ops)
        self.line(process, "invoke", "committed", op=op, group=group, topic=topic, partition=partition)
        return op

    def found_committed(self, process: str, op: int, value: str | None) -> None:
        """``value`` None: the group has committed nothing there."""
        self.line(process, "ok", "committed", op=op, value=value)

    def assigned(self, process: str, group: str, generation: int, member: str, shares: Sequence[str]) -> None:
        """What a member was assigned: an instance id, or a member id, and names of shares."""
        fields = {"group": group, "generation": generation, "member": member, "shares": list(shares)}
        self.line(process, "ok", "assigned", **fields)

    # ---- the end of a run ----------------------------------------------------------------------------------

    def final(
        self,
        process: str,
        topic: str,
        partition: int,
        *,
        start: int,
        end: int,
        records: Sequence[tuple[int, str]],
        high_watermark: int | None = None,
        columns: Sequence[int] | None = None,
        cells: Sequence[Cell] = (),
    ) -> None:
        """All of a partition, once everything is mended. ``high_watermark``: where the log ends for readers
        of uncommitted records. Of typed rows ``columns`` and ``cells`` are as of a poll.
        """
        place = {"topic": topic, "partition": partition, "high_watermark": high_watermark}
        for first, last, part in _parts(records, start, end):
            some = _cells_between(cells, first, last) or None
            fields = {"start": first, "end": last, "records": part, "columns": columns, "cells": some}
            self.line(process, "ok", "final", **place, **fields)

    def dump(
        self,
        process: str,
        broker: str,
        topic: str,
        partition: int,
        *,
        start: int,
        end: int,
        high_watermark: int,
        records: Sequence[tuple[int, int, str]],
        batches: Sequence[tuple[int, int, str]] = (),
        cells: Sequence[Cell] | None = None,
    ) -> None:
        """One replica's log, as its files have it. ``cells``: what the columns of typed rows hold."""
        parts = list(_parts(records, start, end))
        split = list(_split_batches(batches, [last for _, last, _ in parts]))
        for (first, last, part), digests in zip(parts, split, strict=True):
            self.line(
                process,
                "ok",
                "dump",
                broker=broker,
                topic=topic,
                partition=partition,
                start=first,
                end=last,
                high_watermark=high_watermark,
                records=part,
                batches=digests or None,
                cells=None if cells is None else _cells_between(cells, first, last),
            )

    # ---- events --------------------------------------------------------------------------------------------

    def event(self, process: str, what: str, /, **fields: Any) -> None:
        """A line of the table of events: ``event("harness", "fault", kind="kill", target="broker-1", …)``."""
        self.line(process, "event", what, **fields)


def _parts(
    records: Sequence[tuple[Any, ...]], start: int, end: int
) -> Iterable[tuple[int, int, Sequence[tuple[Any, ...]]]]:
    """``records`` in pieces, with the offsets at which each begins and ends."""
    for at in range(0, max(len(records), 1), RECORDS_MAX):
        part = records[at : at + RECORDS_MAX]
        is_last = at + RECORDS_MAX >= len(records)
        last = end if is_last else part[-1][0] + 1
        yield start, last, part
        start = last


def _cells_between(cells: Sequence[Cell], first: int, end: int) -> list[Cell]:
    return [cell for cell in cells if first <= cell[0] < end]


def _split_batches(
    batches: Sequence[tuple[int, int, str]], ends: Sequence[int]
) -> Iterable[list[tuple[int, int, str]]]:
    """Each batch with the part in which it begins."""
    at = 0
    for number, end in enumerate(ends):
        first = at
        while at < len(batches) and (batches[at][0] < end or number == len(ends) - 1):
            at += 1
        yield list(batches[first:at])
