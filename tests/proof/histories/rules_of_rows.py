"""The rule about rows of typed topics.

Columns have ids that are never used again, so what a reader sees needs no knowledge of versions: whatever its
columns are called by now, and however wide, they hold what the row's writer gave to those ids.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from histories.facts import Facts, PartitionFacts
from histories.findings import Found, Judged, told_send
from histories.model import Cell, Poll, Send

Sight = tuple[str, Iterable[tuple[int, str]], Sequence[int] | None, Sequence[Cell]]
"""Who looked, offsets and values, which columns (None: all), and what they held."""


def rows_keep_their_columns(facts: Facts, judged: Judged) -> Found:
    """Of polls, final reads and replicas' logs. A row that nobody sent is for another rule to tell."""
    for one in facts.partitions.values():
        for who, records, columns, cells in _sights(one):
            held = _by_offset(cells)
            for offset, value in records:
                send = facts.send_of.get(value)
                if send is None or send.cells is None:
                    continue
                judged.add(1)
                wrong = _difference(send, columns, held.get(offset, {}))
                if wrong is not None:
                    yield one, f"{value} at {offset}: {who} was shown {wrong}", (told_send(send),)


def _sights(one: PartitionFacts) -> Iterable[Sight]:
    for read in one.reads:
        if isinstance(read, Poll) and read.columns is not None:
            yield read.process, read.records, read.columns, read.cells
    if one.final is not None and one.final.columns is not None:
        yield "the final read", one.final.records, one.final.columns, one.final.cells
    for dump in one.dumps:
        if dump.cells is not None:
            values = ((offset, value) for offset, _, value in dump.records)
            yield f"the dump of {dump.broker}", values, None, dump.cells


def _by_offset(cells: Sequence[Cell]) -> Mapping[int, Mapping[int, str]]:
    found: defaultdict[int, dict[int, str]] = defaultdict(dict)
    for offset, column, text in cells:
        found[offset][column] = text
    return found


def _difference(send: Send, columns: Sequence[int] | None, shown: Mapping[int, str]) -> str | None:
    """What is wrong in the first column that is; None if all are as they were sent."""
    sent = send.cells or {}
    looked_at = {*sent, *shown} if columns is None else {*columns, *shown}
    for column in sorted(looked_at):
        if sent.get(column) != shown.get(column):
            return f"{_told(shown.get(column))} in column {column}, which was sent {_told(sent.get(column))}"
    return None


def _told(text: str | None) -> str:
    return "null" if text is None else repr(text)
