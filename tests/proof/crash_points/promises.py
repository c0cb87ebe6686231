"""What a child promised before it ended, and so what must be found.

The child tells, in the order in which things happen, what its logs hold. A *state* of a log is the list of
its batches and where it begins and ends; ``None``: there is no such log.

    may      from now on the log may be found so: something was begun that leads there
    is       it is so; whoever was to be told has been told
    synced   it is so on the medium
    clean    it stopped cleanly, or does so no more
    operation   what is being done, for the table of results

After SIGKILL the last ``is`` and every ``may`` since are legal, after a power cut the last ``synced`` and all
that came since; in both cases something in between two of them too, as long as nothing is missing that all of
them have.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Batch(NamedTuple):
    """A batch as told apart from all others."""

    base_offset: int
    next_offset: int
    epoch: int
    crc: int


@dataclass(frozen=True)
class State:
    """A log."""

    batches: tuple[Batch, ...]
    start: int
    end: int
    epochs: tuple[tuple[int, int], ...] = ()
    rows: tuple[tuple[int, str, str], ...] | None = None
    """Offset, key and value of every record, where compaction may remove some."""

    @classmethod
    def of(cls, told: dict[str, Any] | None) -> "State | None":
        if told is None:
            return None
        batches = tuple(Batch(*one) for one in told["batches"])
        epochs = tuple((epoch, start) for epoch, start in told["epochs"])
        rows = told.get("rows")
        return cls(
            batches,
            told["start"],
            told["end"],
            epochs,
            None if rows is None else tuple((offset, key, value) for offset, key, value in rows),
        )

    def told(self) -> dict[str, Any]:
        return {
            "batches": self.batches,
            "start": self.start,
            "end": self.end,
            "epochs": self.epochs,
            "rows": self.rows,
        }


Legal = list[State | None]


@dataclass
class Promises:
    """What was told up to some moment."""

    operation: str = "start"
    after_kill: dict[str, Legal] = field(default_factory=dict)
    after_power_cut: dict[str, Legal] = field(default_factory=dict)
    may_be_clean: bool = False
    seen: dict[str, list[State]] = field(default_factory=dict)
    """Every state that a log was ever in, for what must not be invented."""

    def hear(self, text: str) -> None:
        told = json.loads(text)
        if "operation" in told:
            self.operation = told["operation"]
        if "clean" in told:
            self.may_be_clean = told["clean"]
        for kind in ("may", "is", "synced"):
            for log, state in told.get(kind, {}).items():
                self._hear(kind, log, State.of(state))

    def _hear(self, kind: str, log: str, state: State | None) -> None:
        if state is not None:
            self.seen.setdefault(log, []).append(state)
        if kind == "synced":
            self.after_power_cut[log] = [state]
            return
        self.after_power_cut.setdefault(log, [None]).append(state)
        if kind == "is":
            self.after_kill[log] = [state]
        else:
            self.after_kill.setdefault(log, [None]).append(state)


def required(legal: Iterable[State]) -> list[Batch]:
    """The batches that are in all of them, in order."""
    states = list(legal)
    common = set(states[0].batches).intersection(*(state.batches for state in states[1:]))
    return [batch for batch in states[0].batches if batch in common]
