"""The problems that a dump found, reported at the end in Kafka's words, with further kinds of our own.

A file may have as many problems as entries, so only the first of each kind and file are kept, and the others
are counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

KEPT_MAX: Final = 1_000


class Kind(Enum):
    """A kind of problem, with its heading and its line in Kafka's words, or in ours where Kafka crashes."""

    INDEX_MISMATCH = (
        "Mismatches in :{file}",
        "  Index offset: {index_offset}, log offset: {log_offset}",
    )
    TIMESTAMP_MISMATCH = (
        "Found timestamp mismatch in :{file}",
        "  Index timestamp: {index_timestamp}, log timestamp: {log_timestamp}",
    )
    OUT_OF_ORDER_TIMESTAMP = (
        "Found out of order timestamp in :{file}",
        "  Index timestamp: {index_timestamp}, Previously indexed timestamp: {previous_index_timestamp}",
    )
    OFFSET_NOT_FOUND = (
        "The following indexed offsets are not found in the log.",
        "Indexed offset: {index_offset}, found log offset: {log_offset}",
    )
    NON_CONSECUTIVE = ("Non-consecutive offsets in {file}", "  {first} is followed by {second}")
    CORRUPT = ("Corruption in {file}", "  {reason}")
    CORRUPT_AT = ("Corrupt bytes in {file}", "  position: {position} size: {size}: {reason}")
    UNREADABLE = ("Not dumped: {file}", "  {reason}")

    @property
    def heading(self) -> str:
        return self.value[0]

    @property
    def line(self) -> str:
        return self.value[1]


HARMLESS: Final = frozenset({Kind.NON_CONSECUTIVE})
"""Reported, but not a failure, because compaction leaves such gaps."""


@dataclass(slots=True)
class _Group:
    count: int = 0
    kept: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Problems:
    """The problems of all files of one run."""

    _groups: dict[tuple[Kind, str], _Group] = field(default_factory=dict)

    def add(self, kind: Kind, file: str, **facts: Any) -> None:
        group = self._groups.setdefault((kind, file), _Group())
        group.count += 1
        if len(group.kept) < KEPT_MAX:
            group.kept.append(facts)

    @property
    def found(self) -> bool:
        """Whether a problem must change the exit status."""
        return any(kind not in HARMLESS for kind, _ in self._groups)

    def lines(self) -> Iterator[str]:
        """For people: kind after kind, as Kafka's tool ends."""
        for kind in Kind:
            for (of_kind, file), group in self._groups.items():
                if of_kind is kind:
                    yield kind.heading.format(file=file)
                    yield from (kind.line.format(**facts) for facts in group.kept)
                    if group.count > len(group.kept):
                        yield f"  and {group.count - len(group.kept)} more"

    def data(self) -> Iterator[dict[str, Any]]:
        """For programs."""
        for (kind, file), group in self._groups.items():
            for facts in group.kept:
                yield {"file": file, "kind": kind.name.lower(), **facts}
            if group.count > len(group.kept):
                yield {"file": file, "kind": kind.name.lower(), "more": group.count - len(group.kept)}
