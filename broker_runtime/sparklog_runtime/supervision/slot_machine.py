"""A slot as a pure machine: it is given facts and keeps its state, and says what the supervisor does.

The state changes by the table of ``slot_states`` alone. Beside it the machine keeps what words and the next
start need: why a process ended, how often starts failed, and whether a job runs. Time is an argument, in
seconds by the monotonic clock. The supervisor's lock guards it.
"""

from dataclasses import dataclass, field
from typing import Final

from sparklog.model.errors import SparklogError, UnsafeStartError
from sparklog_runtime.supervision.slot_states import LAUNCHES_NOTHING, TABLE, Do, Fact, SlotState
from sparklog_runtime.supervision.start_history import CRASH_LOOP_STARTS, StartHistory

NO_EXECUTOR_S: Final = 10.0
"""A job that has no process after this long waits for an executor."""

START_TRIES_MAX: Final = 3
"""After so many starts that led to no registered broker, a start of the cluster fails."""

CUT_OFF: Final = "the driver does not reach its host, and ZooKeeper has ended its registration"
OUT_OF_REACH: Final = "the driver does not reach its host; it may serve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a process cannot run. ``is_fatal``: trying again has no prospect. ``is_unsafe``: it is refused for
    safety.
    """

    reason: str
    is_fatal: bool = False
    is_unsafe: bool = False


@dataclass(slots=True)
class SlotMachine:
    """See the module's text."""

    state: SlotState = SlotState.AWAY
    is_wished: bool = True
    job: int = 0
    """Counts this slot's jobs, so that a cancel meant for one never hits the next."""
    job_runs: bool = False
    without_process_since: float = 0.0
    """When its job was launched, or when the process of that job ended: Spark runs a task again by itself."""
    is_registered: bool = False
    registered_at: float | None = None
    """When a process of this job was registered; None if none was."""
    died_at: float | None = None
    """Since when its broker is away; None while it serves, and before it served."""
    pid: int = -1
    buried_pid: int = -1
    """The last process that was reported dead: alive, it has lost its registration, and must start again."""
    said_bye: bool = False
    farewell: str = ""
    """Why the process stopped, if it said so before it ended; or how it ended."""
    leaves: str = ""
    """Why its process was asked to stop, to be launched again elsewhere."""
    failure: Failure | None = None
    """Why the present start failed, or the one before."""
    zookeeper_is_away: bool = False
    """Whether that is the failure of this start: it counts for nothing."""
    shown_reason: str = ""
    """Why its broker cannot run, as it was reported last: a reason that stays is reported once."""
    starts: StartHistory = field(default_factory=StartHistory)
    obeyed_starts: int = 0
    """The wish's ``starts`` that its present job follows."""

    def _on(self, fact: Fact) -> Do:
        """The one place where the state changes."""
        self.state, do = TABLE.get((self.state, fact), (self.state, Do.NOTHING))
        return do

    # ------------------------------------------------------------------ the job

    @property
    def may_launch(self) -> bool:
        return not self.job_runs and self.state not in LAUNCHES_NOTHING

    @property
    def reason(self) -> str:
        """Why its broker does not serve, as far as it is known; empty while all is well."""
        if self.state is SlotState.SERVING:
            return ""
        if self.state is SlotState.CUT:
            return OUT_OF_REACH
        if self.state in (SlotState.CRASH_LOOP, SlotState.TRYING):
            return self.starts.last_reason
        return self.farewell or ("" if self.failure is None else self.failure.reason)

    @property
    def lasting_failure(self) -> SparklogError | None:
        """Why its broker cannot start, once trying again has no prospect."""
        found = self.failure
        if found is None or not (found.is_fatal or self.starts.barren >= START_TRIES_MAX):
            return None
        return (UnsafeStartError if found.is_unsafe else SparklogError)(found.reason)

    def launches(self, starts: int, now: float) -> None:
        """A job is launched; where ``starts`` says that one was asked for, all that failed is forgotten."""
        if starts != self.obeyed_starts:
            self.obeyed_starts, self.starts = starts, StartHistory()
            self.failure, self.shown_reason = None, ""
            self._on(Fact.START_ASKED)
        self.job += 1
        self.job_runs = True
        self.without_process_since = now
        self.registered_at = None
        self.zookeeper_is_away = False
        self.farewell = self.leaves = ""

    def looked_at(self, now: float) -> None:
        """Time passes."""
        if self.job_runs and now - self.without_process_since >= NO_EXECUTOR_S:
            self._on(Fact.WAITED)

    def job_ended(self, error: Failure | None, now: float) -> str | None:
        """With Spark's ``error``, or without one. What is to be said, if this begins a crash loop."""
        self.job_runs = False
        if error is not None and self.registered_at is None and self.failure is None:
            self.failure = error
        served_s = None if self.registered_at is None else now - self.registered_at
        words = None
        if self.is_wished:
            said = self.failure or error
            reason = self.farewell or ("" if said is None else said.reason)
            words = self.starts.ended(served_s, reason, counts=not self.zookeeper_is_away)
        self._on(Fact.FAILED_OFTEN if self._is_crash_loop else Fact.JOB_ENDED)
        return words

    @property
    def _is_crash_loop(self) -> bool:
        return self.starts.short >= CRASH_LOOP_STARTS

    # ------------------------------------------------------------------ its process

    def said_hello(self, pid: int) -> Do:
        self.said_bye = self.is_registered = False
        self.farewell = self.leaves = ""
        self.pid = pid
        do = self._on(Fact.SAID_HELLO)
        return self._on(Fact.IS_BURIED) if pid == self.buried_pid else do

    def recovers(self) -> None:
        self._on(Fact.RECOVERS)

    def registered(self, now: float) -> float | None:
        """Since when its broker was away, by the monotonic clock; None at the first start."""
        self.is_registered = True
        self.registered_at = now
        self.failure, self.shown_reason = None, ""
        self._on(Fact.REGISTERED)
        died_at, self.died_at = self.died_at, None
        return died_at

    def failed(self, failure: Failure, *, zookeeper_is_away: bool) -> bool:
        """Its process cannot run; whether the reason is another than was shown last."""
        self.failure, self.farewell = failure, failure.reason
        self.zookeeper_is_away = zookeeper_is_away
        is_new, self.shown_reason = failure.reason != self.shown_reason, failure.reason
        return is_new

    def bade_farewell(self, reason: str, *, clean: bool) -> None:
        self.said_bye, self.farewell = clean, reason

    def was_cut(self) -> bool:
        """Its connection timed out. Whether its process may be registered, and serve: that is no death."""
        if not self.is_registered:
            return False
        self.said_bye, self.leaves = True, CUT_OFF
        self._on(Fact.WAS_CUT)
        return True

    def ended(self, now: float) -> tuple[bool, Do]:
        """Its connection ended. Whether its broker had served."""
        had_served, self.is_registered = self.is_registered, False
        self.without_process_since = now
        if had_served:
            self.died_at = now
        is_death = had_served and not self.said_bye
        if is_death:
            self.buried_pid = self.pid
        do = self._on(Fact.DIED if is_death else Fact.ENDED)
        if not self.job_runs and self._is_crash_loop:
            self._on(Fact.FAILED_OFTEN)
        if self.is_wished:
            self._on(Fact.WISHED)
        return had_served, do

    # ------------------------------------------------------------------ wishes

    def wished(self, is_wished: bool) -> Do:
        """Whether its broker is to serve."""
        if is_wished == self.is_wished:
            return Do.NOTHING
        self.is_wished = is_wished
        return self._on(Fact.WISHED if is_wished else Fact.UNWISHED)

    def decommissioned(self, job: int, why: str) -> Do:
        """The executor of ``job`` is to end."""
        do = Do.NOTHING if self.job != job else self._on(Fact.DECOMMISSIONED)
        if do is Do.ASK_TO_STOP:
            self.leaves = why
        return do

    def application_stops(self) -> None:
        self._on(Fact.APPLICATION_STOPS)
