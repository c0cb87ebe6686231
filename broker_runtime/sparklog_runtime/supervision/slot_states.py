"""The states of a slot, the facts that change them, and what the supervisor does then: one table.

A fact without a row for the present state changes nothing, because facts of Spark, of the process and of
people arrive in any order. ``scripts/draw_states.py`` writes the table into ``docs/architecture.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final


class SlotState(StrEnum):
    AWAY = "away"
    """No process: Spark starts one, or a pause before the next start passes."""
    NO_EXECUTOR = "no executor"
    STARTING = "starting"
    RECOVERING = "recovering"
    SERVING = "serving"
    CUT = "cut"
    """Its process cannot be reached, and may serve."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    CRASH_LOOP = "crash loop"
    TRYING = "trying"
    """A process of a crash loop has said hello."""
    ENDING = "ending"
    """The application stops."""

    @property
    def word(self) -> str:
        """The state as ``sparklog brokers list`` shows it."""
        return _WORDS.get(self, self.value)


_WORDS: Final[Mapping[SlotState, str]] = {
    SlotState.CUT: "serving",
    SlotState.TRYING: "crash loop",
    SlotState.ENDING: "stopping",
}


class Fact(StrEnum):
    """What happened to a slot, in words for people."""

    WAITED = "its job has waited 10 s for a process"
    JOB_ENDED = "its job ends"
    FAILED_OFTEN = "its job ends, the fifth in a row that did not serve for 20 s, or a later one"
    SAID_HELLO = "a process says hello"
    IS_BURIED = "it was reported dead"
    RECOVERS = "it recovers logs"
    REGISTERED = "it is registered"
    WAS_CUT = "its connection times out while it is registered"
    DIED = "its connection ends without a farewell while it is registered"
    ENDED = "its connection ends otherwise, or a cut process is no longer registered"
    DECOMMISSIONED = "its executor is decommissioned"
    UNWISHED = "its broker is to stop"
    WISHED = "its broker is to serve"
    START_ASKED = "a start is asked for"
    APPLICATION_STOPS = "the application stops"


class Do(Enum):
    """What the supervisor does then, in words for people."""

    NOTHING = ""
    ASK_TO_STOP = "asks it to stop"
    CANCEL_JOB = "cancels the job"
    REPORT_DEATH = "reports the death"


@dataclass(frozen=True, slots=True)
class Row:
    before: frozenset[SlotState]
    fact: Fact
    after: SlotState | None
    """None: the state stays."""
    do: Do = Do.NOTHING


def _of(*states: SlotState) -> frozenset[SlotState]:
    return frozenset(states)


_S: Final = SlotState
_WITHOUT_PROCESS: Final = _of(_S.AWAY, _S.NO_EXECUTOR)
_OUTSIDE_A_CRASH_LOOP: Final = _of(_S.AWAY, _S.NO_EXECUTOR, _S.STARTING, _S.RECOVERING, _S.SERVING, _S.CUT)
_WITH_PROCESS: Final = _of(_S.STARTING, _S.RECOVERING, _S.SERVING, _S.CUT, _S.TRYING)

ROWS: Final = (
    Row(_of(_S.AWAY), Fact.WAITED, _S.NO_EXECUTOR),
    Row(_of(_S.NO_EXECUTOR), Fact.JOB_ENDED, _S.AWAY),
    Row(_WITHOUT_PROCESS, Fact.FAILED_OFTEN, _S.CRASH_LOOP),
    Row(_of(_S.STARTING, _S.RECOVERING), Fact.FAILED_OFTEN, _S.TRYING),
    Row(_OUTSIDE_A_CRASH_LOOP, Fact.SAID_HELLO, _S.STARTING),
    Row(_of(_S.CRASH_LOOP), Fact.SAID_HELLO, _S.TRYING),
    Row(_of(_S.STOPPED, _S.STOPPING), Fact.SAID_HELLO, _S.STOPPING, Do.ASK_TO_STOP),
    Row(_of(_S.ENDING), Fact.SAID_HELLO, None, Do.ASK_TO_STOP),
    Row(_of(_S.STARTING, _S.TRYING, _S.STOPPING, _S.ENDING), Fact.IS_BURIED, None, Do.ASK_TO_STOP),
    Row(_of(_S.STARTING), Fact.RECOVERS, _S.RECOVERING),
    Row(_of(_S.STARTING, _S.RECOVERING, _S.TRYING), Fact.REGISTERED, _S.SERVING),
    Row(_of(_S.SERVING), Fact.WAS_CUT, _S.CUT),
    Row(_of(_S.SERVING), Fact.DIED, _S.AWAY, Do.REPORT_DEATH),
    Row(_of(_S.STOPPING), Fact.DIED, _S.STOPPED, Do.REPORT_DEATH),
    Row(_of(_S.ENDING), Fact.DIED, None, Do.REPORT_DEATH),
    Row(_of(_S.STARTING, _S.RECOVERING, _S.SERVING, _S.CUT), Fact.ENDED, _S.AWAY),
    Row(_of(_S.TRYING), Fact.ENDED, _S.CRASH_LOOP),
    Row(_of(_S.STOPPING), Fact.ENDED, _S.STOPPED),
    Row(_WITH_PROCESS - {_S.CUT}, Fact.DECOMMISSIONED, None, Do.ASK_TO_STOP),
    Row(_WITH_PROCESS, Fact.UNWISHED, _S.STOPPING, Do.ASK_TO_STOP),
    Row(_WITHOUT_PROCESS | {_S.CRASH_LOOP}, Fact.UNWISHED, _S.STOPPED, Do.CANCEL_JOB),
    Row(_of(_S.STOPPED), Fact.WISHED, _S.AWAY),
    Row(_of(_S.CRASH_LOOP), Fact.START_ASKED, _S.AWAY),
    Row(_of(_S.TRYING), Fact.START_ASKED, _S.STARTING),
    Row(frozenset(_S) - {_S.ENDING}, Fact.APPLICATION_STOPS, _S.ENDING, Do.ASK_TO_STOP),
)

TABLE: Final[Mapping[tuple[SlotState, Fact], tuple[SlotState, Do]]] = {
    (before, row.fact): (row.after or before, row.do) for row in ROWS for before in row.before
}

LAUNCHES_NOTHING: Final = _of(_S.CUT, _S.STOPPING, _S.STOPPED, _S.ENDING)
"""In all other states a job is launched where none runs, after the pause that failed starts ask for."""
