"""Reads histories: every field has its type and every size its limit, or the reader says line and field.

Invocations and completions are joined here, so that rules see one object for each thing that a client did.
"""

import heapq
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from histories.model import (
    ACKS_ALL,
    Assigned,
    Commit,
    CommittedRead,
    Deleted,
    Dump,
    End,
    FaultWindow,
    FinalRead,
    Finish,
    GroupLost,
    History,
    Init,
    Leader,
    Outcome,
    Poll,
    Seek,
    Send,
    TimedOut,
    TopicEvent,
    Written,
)

VERSION: Final = 1
LINE_MAX: Final = 16 << 20
VALUE_MAX: Final = 4_096
NAME_MAX: Final = 1_024
RECORDS_MAX: Final = 100_000
INT_MAX: Final = (1 << 63) - 1
NS_PER_MS: Final = 1_000_000
IGNORED_FAILURES: Final = ("poll", "end", "seek", "final", "dump", "committed", "assigned")
ACKS: Final = {"all": ACKS_ALL, 1: 1, 0: 0}

Fields = dict[str, Any]
Operation = TypeVar("Operation", Send, Commit, Init, Finish)


class HistoryError(ValueError):
    """What was read is no history."""


Line = tuple[int, Fields, Path, int]
"""When, the object, and where it stands."""


def read_history(*paths: Path) -> History:
    """The history in these files, merged by time."""
    joiner = _Joiner()
    files = [_lines(path) for path in paths]
    take = joiner.take
    for line in files[0] if len(files) == 1 else heapq.merge(*files, key=itemgetter(0)):
        try:
            take(line[0], line[1])
        except HistoryError as error:
            raise HistoryError(f"{line[2]}, line {line[3]}: {error}") from None
    return joiner.finish()


def _lines(path: Path) -> Iterator[Line]:
    """A last line without an end is left out: its writer was killed in the middle of it."""
    scan = json.JSONDecoder().raw_decode
    t_before = 0
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(LINE_MAX + 1):
            number += 1
            if raw[-1:] != b"\n":
                if len(raw) > LINE_MAX:
                    raise HistoryError(f"{path}, line {number}: longer than {LINE_MAX} bytes")
                return
            try:
                text = raw.decode()
                fields, end = scan(text)
                if type(fields) is not dict or text[end:].strip():
                    raise HistoryError("no object")
                t_ns = _number(fields, "t_ns")
                if t_ns < t_before:
                    raise HistoryError(f"t_ns {t_ns} after {t_before}: lines must be in the order of time")
            except HistoryError as error:
                raise HistoryError(f"{path}, line {number}: {error}") from None
            except (ValueError, RecursionError) as error:
                raise HistoryError(f"{path}, line {number}: no JSON: {error}") from None
            t_before = t_ns
            yield t_ns, fields, path, number


# ---- fields --------------------------------------------------------------------------------------------


def _number(fields: Fields, name: str, default: int | None = None) -> int:
    """A 64-bit integer that is not negative; ``default`` where it is absent."""
    value = fields.get(name)
    if type(value) is int and 0 <= value <= INT_MAX:
        return value
    if value is None and default is not None:
        return default
    raise HistoryError(f"{name} is {_shown(value)}, not a whole number from 0 to {INT_MAX}")


def _text(fields: Fields, name: str, size_max: int = NAME_MAX) -> str:
    value = fields.get(name)
    if type(value) is str and len(value) <= size_max:
        return value
    raise HistoryError(f"{name} is {_shown(value)}, not a text of at most {size_max} characters")


def _flag(fields: Fields, name: str, default: bool | None = None) -> bool:
    value = fields.get(name)
    if value is True or value is False:
        return value
    if value is None and default is not None:
        return default
    raise HistoryError(f"{name} is {_shown(value)}, not true or false")


def _list(fields: Fields, name: str) -> list[Any]:
    value = fields.get(name)
    if type(value) is list and len(value) <= RECORDS_MAX:
        return value
    raise HistoryError(f"{name} is {_shown(value)}, not a list of at most {RECORDS_MAX}")


def _shown(value: object) -> str:
    text = "absent" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_offset(value: object) -> bool:
    return type(value) is int and 0 <= value <= INT_MAX


def _is_value(value: object) -> bool:
    return type(value) is str and len(value) <= VALUE_MAX


def _records(fields: Fields) -> list[tuple[int, str]]:
    records: list[tuple[int, str]] = []
    for one in _list(fields, "records"):
        if type(one) is not list or len(one) != 2 or not _is_offset(one[0]) or not _is_value(one[1]):
            raise HistoryError(f"a record is {_shown(one)}, not [offset, value]")
        records.append((one[0], one[1]))
    return records


def _epochs(fields: Fields, records: list[tuple[int, str]]) -> list[tuple[int, int]]:
    if fields.get("epochs") is None:
        return []
    epochs: list[tuple[int, int]] = []
    for one in _list(fields, "epochs"):
        if type(one) is not list or len(one) != 2 or not (_is_offset(one[0]) and _is_offset(one[1])):
            raise HistoryError(f"one of epochs is {_shown(one)}, not [offset, leader epoch]")
        epochs.append((one[0], one[1]))
    if epochs and (not records or epochs[0][0] != records[0][0] or epochs[-1][0] > records[-1][0]):
        raise HistoryError(f"epochs are {_shown(epochs)}, and do not begin with the first of the records")
    if any(a[0] >= b[0] for a, b in pairwise(epochs)):
        raise HistoryError(f"epochs are {_shown(epochs)}, not in the order of offsets")
    return epochs


def _columns(fields: Fields) -> list[int] | None:
    """Ids of columns; None where they are absent."""
    if fields.get("columns") is None:
        return None
    columns = _list(fields, "columns")
    if not all(map(_is_offset, columns)):
        raise HistoryError(f"columns are {_shown(columns)}, not whole numbers")
    return columns


def _cells_of_row(fields: Fields) -> dict[int, str] | None:
    if fields.get("cells") is None:
        return None
    cells: dict[int, str] = {}
    for one in _list(fields, "cells"):
        if type(one) is not list or len(one) != 2 or not _is_offset(one[0]) or not _is_value(one[1]):
            raise HistoryError(f"one of cells is {_shown(one)}, not [column, value]")
        cells[one[0]] = one[1]
    return cells


def _cells(fields: Fields) -> list[tuple[int, int, str]]:
    return [] if fields.get("cells") is None else _triples(fields, "cells")


def _isolation(fields: Fields) -> Literal["", "committed", "uncommitted"]:
    match fields.get("isolation"):
        case None:
            return ""
        case "committed":
            return "committed"
        case "uncommitted":
            return "uncommitted"
        case other:
            raise HistoryError(f"isolation is {_shown(other)}, not committed or uncommitted")


def _triples(fields: Fields, name: str) -> list[tuple[int, int, str]]:
    triples: list[tuple[int, int, str]] = []
    for one in _list(fields, name):
        is_one = type(one) is list and len(one) == 3
        if not is_one or not (_is_offset(one[0]) and _is_offset(one[1]) and _is_value(one[2])):
            raise HistoryError(f"one of {name} is {_shown(one)}, not two whole numbers and a text")
        triples.append((one[0], one[1], one[2]))
    return triples


def _refusal(fields: Fields) -> tuple[Outcome, str]:
    return "fail" if fields["type"] == "fail" else "info", _text(fields, "error")


# ---- joining -------------------------------------------------------------------------------------------


class _Joiner:
    """Takes line after line."""

    def __init__(self) -> None:
        self._history = History()
        self._sends: dict[tuple[str, int], Send | Commit | Init | Finish] = {}
        self._asked: dict[tuple[str, int], tuple[str, int, str, int]] = {}
        """Polls and questions without an answer: topic, partition, what, when."""
        self._groups_asked: dict[tuple[str, int], CommittedRead] = {}
        self._finals: dict[tuple[str, int], FinalRead] = {}
        self._dumps: dict[tuple[str, str, int], Dump] = {}
        self._windows: dict[str, FaultWindow] = {}
        self._takers: dict[tuple[str, str], Callable[[int, Fields, str], None]] = {
            ("invoke", "send"): self._send,
            ("ok", "send"): self._sent,
            ("fail", "send"): self._not_sent,
            ("info", "send"): self._not_sent,
            ("invoke", "poll"): self._ask,
            ("ok", "poll"): self._poll,
            ("invoke", "end"): self._ask,
            ("ok", "end"): self._end,
            ("ok", "seek"): self._seek,
            ("invoke", "commit"): self._commit,
            ("ok", "commit"): self._done,
            ("fail", "commit"): self._not_done,
            ("info", "commit"): self._not_done,
            ("invoke", "init"): self._init,
            ("ok", "init"): self._inited,
            ("fail", "init"): self._not_inited,
            ("info", "init"): self._not_inited,
            ("invoke", "finish"): self._finish,
            ("ok", "finish"): self._finished,
            ("fail", "finish"): self._not_finished,
            ("info", "finish"): self._not_finished,
            ("ok", "written"): self._written,
            ("invoke", "committed"): self._ask_committed,
            ("ok", "committed"): self._committed,
            ("ok", "assigned"): self._assigned,
            ("ok", "final"): self._final,
            ("ok", "dump"): self._dump,
            ("event", "history"): self._version,
            ("event", "topic"): self._topic,
            ("event", "deleted"): self._deleted,
            ("event", "group_lost"): self._group_lost,
            ("event", "leader"): self._leader,
            ("event", "timed_out"): self._timed_out,
            ("event", "fault"): self._fault,
            ("event", "heal"): self._heal,
            ("event", "not_run"): self._not_run,
            ("event", "note"): self._ignore,
            **{(kind, what): self._ignore for kind in ("fail", "info") for what in IGNORED_FAILURES},
            **{("invoke", what): self._ignore for what in ("seek", "final", "dump", "assigned")},
        }

    def take(self, t_ns: int, fields: Fields) -> None:
        kind, what = fields.get("type"), fields.get("f")
        taker = self._takers.get((kind, what)) if type(kind) is str and type(what) is str else None
        if taker is None:
            raise HistoryError(
                f"type {_shown(kind)} with f {_shown(what)} is not in tests/proof/docs/history.md"
            )
        taker(t_ns, fields, _text(fields, "process"))

    def finish(self) -> History:
        history = self._history
        history.finals = list(self._finals.values())
        history.dumps = list(self._dumps.values())
        history.faults = list(self._windows.values())
        return history

    # ---- clients -------------------------------------------------------------------------------------------

    def _send(self, t_ns: int, fields: Fields, process: str) -> None:
        acks = fields.get("acks")
        if type(acks) not in (str, int) or acks not in ACKS:
            raise HistoryError(f'acks is {_shown(acks)}, not "all", 1 or 0')
        send = Send(
            process,
            _text(fields, "topic"),
            _number(fields, "partition"),
            _text(fields, "value", VALUE_MAX),
            ACKS[acks],
            _text(fields, "session"),
            _number(fields, "seq"),
            _flag(fields, "idempotent"),
            t_ns,
        )
        if fields.get("key") is not None:
            send.key = _text(fields, "key", VALUE_MAX)
            send.is_tombstone = _flag(fields, "tombstone", default=False)
        if fields.get("transaction") is not None:
            send.transaction = _text(fields, "transaction")
        if fields.get("source") is not None:
            send.source = _text(fields, "source", VALUE_MAX)
        if fields.get("in_flight") is not None:
            send.in_flight = _number(fields, "in_flight")
        send.cells = _cells_of_row(fields)
        self._begin(fields, process, send)
        self._history.sends.append(send)

    def _begin(self, fields: Fields, process: str, operation: Send | Commit | Init | Finish) -> None:
        op = process, _number(fields, "op")
        if op in self._sends:
            raise HistoryError(f"op {op[1]} of {process} is invoked a second time")
        self._sends[op] = operation

    def _answered(self, t_ns: int, fields: Fields, process: str, kind: type[Operation]) -> Operation:
        op = process, _number(fields, "op")
        operation = self._sends.get(op)
        if not isinstance(operation, kind):
            raise HistoryError(f"op {op[1]} of {process} was not invoked")
        if operation.done_ns >= 0:
            raise HistoryError(f"op {op[1]} of {process} is completed a second time")
        operation.done_ns = t_ns
        return operation

    def _sent(self, t_ns: int, fields: Fields, process: str) -> None:
        send = self._answered(t_ns, fields, process, Send)
        send.outcome, send.error = "ok", ""
        send.offset = _number(fields, "offset", -1)
        if "leader_epoch" in fields:
            send.leader_epoch = _number(fields, "leader_epoch", -1)

    def _not_sent(self, t_ns: int, fields: Fields, process: str) -> None:
        send = self._answered(t_ns, fields, process, Send)
        send.outcome, send.error = _refusal(fields)

    def _ask(self, t_ns: int, fields: Fields, process: str) -> None:
        op = process, _number(fields, "op")
        what = fields["f"]
        self._asked[op] = (_text(fields, "topic"), _number(fields, "partition"), what, t_ns)

    def _begun(self, t_ns: int, fields: Fields, process: str) -> int:
        """When a poll began; without an invocation, now."""
        op = fields.get("op")
        asked = None if op is None else self._asked.pop((process, _number(fields, "op")), None)
        return t_ns if asked is None else asked[3]

    def _poll(self, t_ns: int, fields: Fields, process: str) -> None:
        records = _records(fields)
        poll = Poll(
            process,
            _text(fields, "topic"),
            _number(fields, "partition"),
            _number(fields, "from"),
            records,
            self._begun(t_ns, fields, process),
            t_ns,
            _number(fields, "leader_epoch", -1),
            _epochs(fields, records),
            _isolation(fields),
            _columns(fields),
            _cells(fields),
        )
        self._history.reads.append(poll)

    def _seek(self, t_ns: int, fields: Fields, process: str) -> None:
        seek = Seek(
            process,
            _text(fields, "topic"),
            _number(fields, "partition"),
            _number(fields, "offset"),
            t_ns,
        )
        self._history.reads.append(seek)

    def _end(self, t_ns: int, fields: Fields, process: str) -> None:
        op = _number(fields, "op")
        asked = self._asked.pop((process, op), None)
        if asked is None or asked[2] != "end":
            raise HistoryError(f"op {op} of {process} was not invoked")
        topic, partition, _, begun_ns = asked
        offset, epoch = _number(fields, "offset"), _number(fields, "leader_epoch", -1)
        self._history.ends.append(End(process, topic, partition, begun_ns, t_ns, offset, epoch))

    def _final(self, t_ns: int, fields: Fields, process: str) -> None:
        topic, partition = _text(fields, "topic"), _number(fields, "partition")
        start, end = _number(fields, "start"), _number(fields, "end")
        known = self._finals.get((topic, partition))
        if known is None:
            mark = _number(fields, "high_watermark", -1)
            records, columns, cells = _records(fields), _columns(fields), _cells(fields)
            read = FinalRead(topic, partition, start, end, records, t_ns, mark, columns, cells)
            self._finals[topic, partition] = read
        elif known.end != start:
            raise HistoryError(f"a second final read of {topic}-{partition}, or a part that is not the next")
        else:
            known.records += _records(fields)
            known.cells += _cells(fields)
            known.end = end

    def _dump(self, t_ns: int, fields: Fields, process: str) -> None:
        broker, topic, partition = (
            _text(fields, "broker"),
            _text(fields, "topic"),
            _number(fields, "partition"),
        )
        start, end = _number(fields, "start"), _number(fields, "end")
        records = _triples(fields, "records")
        batches = [] if fields.get("batches") is None else _triples(fields, "batches")
        cells = None if fields.get("cells") is None else _triples(fields, "cells")
        known = self._dumps.get((broker, topic, partition))
        if known is None:
            mark = _number(fields, "high_watermark")
            dump = Dump(broker, topic, partition, start, end, mark, records, batches, t_ns, cells)
            self._dumps[broker, topic, partition] = dump
        elif known.end != start:
            raise HistoryError(
                f"a second dump of {topic}-{partition} of {broker}, or a part that is not the next"
            )
        else:
            known.records += records
            known.batches += batches
            if cells is not None:
                known.cells = [*(known.cells or ()), *cells]
            known.end = end

    # ---- groups --------------------------------------------------------------------------------------------

    def _commit(self, t_ns: int, fields: Fields, process: str) -> None:
        where = _text(fields, "group"), _text(fields, "topic"), _number(fields, "partition")
        commit = Commit(process, *where, _text(fields, "value", VALUE_MAX), t_ns)
        self._begin(fields, process, commit)
        self._history.commits.append(commit)

    def _done(self, t_ns: int, fields: Fields, process: str) -> None:
        commit = self._answered(t_ns, fields, process, Commit)
        commit.outcome, commit.error = "ok", ""

    def _not_done(self, t_ns: int, fields: Fields, process: str) -> None:
        commit = self._answered(t_ns, fields, process, Commit)
        commit.outcome, commit.error = _refusal(fields)

    # ---- transactions --------------------------------------------------------------------------------------

    def _init(self, t_ns: int, fields: Fields, process: str) -> None:
        init = Init(process, _text(fields, "transactional_id"), _text(fields, "session"), t_ns)
        self._begin(fields, process, init)
        self._history.inits.append(init)

    def _inited(self, t_ns: int, fields: Fields, process: str) -> None:
        init = self._answered(t_ns, fields, process, Init)
        init.outcome, init.error = "ok", ""

    def _not_inited(self, t_ns: int, fields: Fields, process: str) -> None:
        init = self._answered(t_ns, fields, process, Init)
        init.outcome, init.error = _refusal(fields)

    def _finish(self, t_ns: int, fields: Fields, process: str) -> None:
        how = fields.get("how")
        if how not in ("commit", "abort"):
            raise HistoryError(f"how is {_shown(how)}, not commit or abort")
        finish = Finish(process, _text(fields, "transaction"), how == "commit", t_ns)
        if fields.get("write") is not None:
            finish.write = _text(fields, "write")
        self._begin(fields, process, finish)
        self._history.finishes.append(finish)

    def _finished(self, t_ns: int, fields: Fields, process: str) -> None:
        finish = self._answered(t_ns, fields, process, Finish)
        finish.outcome, finish.error = "ok", ""

    def _not_finished(self, t_ns: int, fields: Fields, process: str) -> None:
        finish = self._answered(t_ns, fields, process, Finish)
        finish.outcome, finish.error = _refusal(fields)

    def _written(self, t_ns: int, fields: Fields, process: str) -> None:
        self._history.written.append(Written(process, _text(fields, "write"), t_ns))

    # ---- committed offsets ---------------------------------------------------------------------------------

    def _ask_committed(self, t_ns: int, fields: Fields, process: str) -> None:
        where = _text(fields, "group"), _text(fields, "topic"), _number(fields, "partition")
        read = CommittedRead(process, *where, None, t_ns, -1)
        self._groups_asked[process, _number(fields, "op")] = read

    def _committed(self, t_ns: int, fields: Fields, process: str) -> None:
        op = _number(fields, "op")
        read = self._groups_asked.pop((process, op), None)
        if read is None:
            raise HistoryError(f"op {op} of {process} was not invoked")
        read.value = None if fields.get("value") is None else _text(fields, "value", VALUE_MAX)
        read.done_ns = t_ns
        self._history.committed.append(read)

    def _assigned(self, t_ns: int, fields: Fields, process: str) -> None:
        shares = _list(fields, "shares")
        if not all(map(_is_value, shares)):
            raise HistoryError(f"shares are {_shown(shares)}, not texts")
        assigned = Assigned(
            process,
            _text(fields, "group"),
            _number(fields, "generation"),
            _text(fields, "member"),
            shares,
            t_ns,
        )
        self._history.assigned.append(assigned)

    # ---- events --------------------------------------------------------------------------------------------

    def _version(self, t_ns: int, fields: Fields, process: str) -> None:
        version = _number(fields, "version")
        if version != VERSION:
            raise HistoryError(f"version {version}; this reader knows version {VERSION}")

    def _topic(self, t_ns: int, fields: Fields, process: str) -> None:
        what, cleanup = _text(fields, "what"), fields.get("cleanup")
        if what not in ("created", "deleted"):
            raise HistoryError(f"what is {_shown(what)}, not created or deleted")
        if cleanup is not None and cleanup not in ("delete", "compact"):
            raise HistoryError(f"cleanup is {_shown(cleanup)}, not delete or compact")
        event = TopicEvent(_text(fields, "topic"), what == "created", t_ns, cleanup == "compact")
        self._history.topics.append(event)

    def _deleted(self, t_ns: int, fields: Fields, process: str) -> None:
        deleted = Deleted(
            _text(fields, "topic"), _number(fields, "partition"), _number(fields, "before"), t_ns
        )
        self._history.deleted.append(deleted)

    def _group_lost(self, t_ns: int, fields: Fields, process: str) -> None:
        self._history.groups_lost.append(GroupLost(_text(fields, "group"), t_ns))

    def _leader(self, t_ns: int, fields: Fields, process: str) -> None:
        leader = Leader(
            _text(fields, "topic"),
            _number(fields, "partition"),
            _text(fields, "leader"),
            _number(fields, "leader_epoch"),
            t_ns,
            _flag(fields, "is_unclean", default=False),
        )
        self._history.leaders.append(leader)

    def _timed_out(self, t_ns: int, fields: Fields, process: str) -> None:
        waited_ns = _number(fields, "waited_ms") * NS_PER_MS
        self._history.timed_out.append(TimedOut(_text(fields, "session"), t_ns, waited_ns))

    def _fault(self, t_ns: int, fields: Fields, process: str) -> None:
        phase, name = _text(fields, "phase"), _text(fields, "id")
        if phase == "begin":
            if name in self._windows:
                raise HistoryError(f"fault {name} begins a second time")
            window = FaultWindow(name, _text(fields, "kind"), _text(fields, "target"), t_ns)
            self._windows[name] = window
        elif phase == "end":
            if name not in self._windows:
                raise HistoryError(f"fault {name} ends, and never began")
            self._windows[name].end_ns = t_ns
        else:
            raise HistoryError(f"phase is {_shown(phase)}, not begin or end")

    def _heal(self, t_ns: int, fields: Fields, process: str) -> None:
        self._history.healed_ns = t_ns

    def _not_run(self, t_ns: int, fields: Fields, process: str) -> None:
        self._history.not_run.append((_text(fields, "kind"), _text(fields, "why")))

    def _ignore(self, t_ns: int, fields: Fields, process: str) -> None:
        """It tells nothing that a rule asks for."""
