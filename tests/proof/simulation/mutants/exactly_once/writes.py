"""Bugs of atomic writes: who is a member, what counts as decided, and which of two runs is right."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from simulation.mutants.exactly_once.transactions import ONE_COORDINATOR
from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from simulation.plans.plots.lost_disks import ISR_LOSES_ITS_DISKS
from sparklog.broker.partition.producer_gate import ProducerGate
from sparklog.core.coordinator.actions import Action, Reply, StateRecord, Tell, Token
from sparklog.core.coordinator.state_machine import Now
from sparklog.core.producers.verification import VerificationGuard, Verifications
from sparklog.core.write_coordinator import deadlines, ending, replay, write_machine
from sparklog.core.write_coordinator.app import App, Change
from sparklog.core.write_coordinator.records import Head
from sparklog.core.write_coordinator.replay import Replay
from sparklog.core.write_coordinator.requests import EndWrite, OpenWrite
from sparklog.core.write_coordinator.responses import EndedWrite
from sparklog.core.write_coordinator.states import AppState
from sparklog.core.write_coordinator.write_machine import WriteMachine
from sparklog.model.ids import LeaderEpoch, ProducerId
from sparklog.model.write_ids import LOST_MEMBERS_MAX, is_of_a_write, write_and_member


def _markers_go_out_before_the_commit_is_prepared(switch: Switch) -> None:
    """Winners and losers get their markers while the decision is on its way to the log."""

    def end(original: Any) -> Any:
        def mutated(
            self: WriteMachine, token: Token, app: App | None, request: EndWrite, now: Now
        ) -> list[Action]:
            actions: list[Action] = original(self, token, app, request, now)
            change = self.under_way.of_apps().get(request.app)
            head = None if change is None else change.head
            if app is None or head is None or head.state is not AppState.PREPARED_COMMIT:
                return actions
            known, app.head = app.head, head
            markers = [Tell(one) for one in app.markers_due(app.members)]
            app.head = known
            return [*markers, *actions]

        return mutated

    switch.method(WriteMachine, "_end", end)


def _winners_are_not_recorded(switch: Switch) -> None:
    """The next coordinator knows that a write is committed, and of no member that it won."""

    def take(original: Any) -> Any:
        def mutated(self: Replay, record: StateRecord) -> None:
            if isinstance(record.value, Head):
                record = replace(record, value=replace(record.value, winners=frozenset()))
            original(self, record)

        return mutated

    switch.method(Replay, "take", take)


def _ids_are_answered_before_they_are_replicated(switch: Switch) -> None:
    """A task is told its producer id while its record is on its way to the log."""

    def write(original: Any) -> Any:
        def mutated(
            self: WriteMachine, name: str, change: Change | None, waiting: Any = None
        ) -> list[Action]:
            if waiting is None or change is None or not isinstance(waiting[1], OpenWrite):
                actions: list[Action] = original(self, name, change, waiting)
                return actions
            return [Reply(waiting[0], change.answer), *original(self, name, change, None)]

        return mutated

    switch.method(WriteMachine, "_write", write)


def _members_are_not_verified(switch: Switch) -> None:
    """A leader takes any batch of a member."""

    def unverified(original: Any) -> Any:
        def mutated(self: ProducerGate, batches: Any) -> tuple[ProducerId, int] | None:
            found: tuple[ProducerId, int] | None = original(self, batches)
            return None if found is None or is_of_a_write(found[0]) else found

        return mutated

    switch.method(ProducerGate, "_unverified", unverified)


def _guards_outlive_the_marker(switch: Switch) -> None:
    """What the coordinator said of a member counts, although its marker has come since."""

    def holds(original: Any) -> Any:
        def mutated(
            self: Verifications, guard: VerificationGuard, producer_id: ProducerId, producer_epoch: int
        ) -> bool:
            is_held: bool = original(self, guard, producer_id, producer_epoch)
            return is_held or is_of_a_write(producer_id)

        return mutated

    switch.method(Verifications, "holds", holds)


def _an_abort_of_a_run_ends_all(switch: Switch) -> None:
    """A driver that was replaced aborts what the next run writes."""

    def run_aborted(app: App, request: EndWrite, wall_ms: int) -> Change:
        return ending.aborted_whole(app, wall_ms, ending._ABORTED, "aborted")

    switch.instead(ending, "_run_aborted", run_aborted)


def _finished_members_must_speak(switch: Switch) -> None:
    """Who has finished, and gives no sign of life any more, is taken for dead."""

    def working(app: App) -> list[int]:
        return app.living()

    switch.instead(deadlines, "_working", working)


def _the_committed_version_is_opened_again(switch: Switch) -> None:
    """A version is new if it is not below the last committed one."""

    def opened(original: Any) -> Any:
        def mutated(app: App | None, request: OpenWrite, wall_ms: int, leader_epoch: LeaderEpoch) -> Any:
            head = None if app is None else app.head
            if head is not None and head.state is AppState.IDLE and request.version == head.committed_version:
                app = App(request.app, replace(head, committed_version=request.version - 1))
            return original(app, request, wall_ms, leader_epoch)

        return mutated

    switch.method(write_machine, "opened", opened)


def _winners_of_another_write_count(switch: Switch) -> None:
    """A member is known by its number alone, that of an aborted write for one of the next."""

    class Same(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    def numbers(producer_id: int) -> tuple[int, int]:
        return Same(), write_and_member(producer_id)[1]

    switch.instead(ending, "write_and_member", numbers)


def _commits_are_answered_before_their_markers(switch: Switch) -> None:
    """A driver is told that its write is visible as soon as that is decided."""

    def committed(original: Any) -> Any:
        def mutated(app: App, request: EndWrite, wall_ms: int) -> Change | EndedWrite:
            change: Change | EndedWrite = original(app, request, wall_ms)
            return replace(change, answer=EndedWrite()) if isinstance(change, Change) else change

        return mutated

    switch.method(ending, "_committed", committed)


def _markers_are_not_sent_by_the_next_coordinator(switch: Switch) -> None:
    """A coordinator that loads a decision waits for markers that nobody writes."""

    def on_loaded(original: Any) -> Any:
        def mutated(self: WriteMachine, now: Now) -> list[Action]:
            return [one for one in original(self, now) if not isinstance(one, Tell)]

        return mutated

    switch.method(WriteMachine, "on_loaded", on_loaded)


def _aborted_writes_get_no_markers(switch: Switch) -> None:
    """An aborted write is complete at once."""

    def markers_due(original: Any) -> Any:
        def mutated(self: App, numbers: Iterable[int]) -> Any:
            if self.head.state is AppState.PREPARED_ABORT:
                self.marked.update(self.members)
            return original(self, numbers)

        return mutated

    switch.method(App, "markers_due", markers_due)


def _numbers_are_left_out_behind_the_known(switch: Switch) -> None:
    """Each new coordinator leaves out the same numbers behind the last member that it knows."""

    def first_number(after_known: int, opened_in: LeaderEpoch, leader_epoch: LeaderEpoch) -> int:
        return after_known + LOST_MEMBERS_MAX

    switch.instead(replay, "first_number", first_number)


ONE_IN_SYNC: Final = {"min.insync.replicas": "1", "transaction.state.log.min.isr": "1"}
"""A coordinator that is alone in its ISR gives numbers, which its disk takes along."""

WRITES: Final[tuple[Mutant, ...]] = (
    Mutant(
        "markers-go-out-before-the-commit-is-prepared",
        "markers before *prepared*",
        "of one version rows of two runs are visible",
        120,
        _markers_go_out_before_the_commit_is_prepared,
        Hunt(kinds=("kill broker", "isolate broker", "pause broker"), writes=1.0),
    ),
    Mutant(
        "winners-are-not-recorded",
        "winners not in the record",
        "a committed write is torn, or not visible",
        60,
        _winners_are_not_recorded,
        Hunt(kinds=("kill broker",), operations=("elect preferred",), writes=1.0),
    ),
    Mutant(
        "ids-are-answered-before-they-are-replicated",
        "an id before its record",
        "two attempts have one producer id, and their rows are confused",
        60,
        _ids_are_answered_before_they_are_replicated,
        Hunt(kinds=("kill broker", "isolate broker", "pause broker"), writes=1.0),
    ),
    Mutant(
        "members-are-not-verified",
        "KAFKA-14402, for members of writes",
        "a late batch opens a transaction that nobody ends",
        60,
        _members_are_not_verified,
        Hunt(plot=83, settings=ONE_COORDINATOR, writes=1.0),
    ),
    Mutant(
        "guards-outlive-the-marker",
        "KAFKA-14402, for members of writes",
        "a late batch opens a transaction that nobody ends",
        60,
        _guards_outlive_the_marker,
        Hunt(plot=84, settings=ONE_COORDINATOR, writes=1.0),
    ),
    Mutant(
        "an-abort-of-a-run-ends-all",
        "an abort that does not look at its run",
        "a driver that was replaced destroys what the next run writes",
        20,
        _an_abort_of_a_run_ends_all,
        Hunt(kinds=("kill broker",), writes=1.0),
    ),
    Mutant(
        "finished-members-must-speak",
        "silence of who is done",
        "long writes never end: their first tasks are taken for dead",
        20,
        _finished_members_must_speak,
        Hunt(kinds=("kill broker",), writes=1.0),
    ),
    Mutant(
        "the-committed-version-is-opened-again",
        "at least instead of above",
        "a replayed micro-batch is there twice",
        60,
        _the_committed_version_is_opened_again,
        Hunt(kinds=("kill broker",), writes=1.0),
    ),
    Mutant(
        "winners-of-another-write-count",
        "member numbers without the write's",
        "a driver that was replaced commits what the next run has half written",
        250,
        _winners_of_another_write_count,
        Hunt(kinds=("kill broker",), writes=1.0),
    ),
    Mutant(
        "commits-are-answered-before-their-markers",
        "an answer without a wait",
        "whoever wrote does not read what was written",
        20,
        _commits_are_answered_before_their_markers,
        Hunt(kinds=("kill broker",), writes=1.0),
        is_quick=True,
    ),
    Mutant(
        "markers-are-not-sent-by-the-next-coordinator",
        "a load without its unfinished business",
        "a committed write is never visible, and holds back all readers",
        20,
        _markers_are_not_sent_by_the_next_coordinator,
        Hunt(kinds=("kill broker", "pause broker"), writes=1.0),
    ),
    Mutant(
        "aborted-writes-get-no-markers",
        "an end without its markers",
        "an aborted write holds back all readers",
        20,
        _aborted_writes_get_no_markers,
        Hunt(kinds=("kill broker",), writes=1.0),
    ),
    Mutant(
        "numbers-are-left-out-behind-the-known",
        "B88",
        "a task's rows are taken for those of a lost one, and are nowhere",
        40,
        _numbers_are_left_out_behind_the_known,
        Hunt(plot=ISR_LOSES_ITS_DISKS, settings=ONE_IN_SYNC, writes=1.0),
        brings_back=("B88",),
    ),
)
