"""One attempt at a task of an atomic write.

OpenWrite -> batches -> OpenWrite, with more partitions -> batches -> OpenWrite: finished -> its driver
    |                                                         |
    +---- a sign of life whenever it pauses                   +-- fails: OpenWrite: withdrawn
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Final

from simulation.clients.client import RETRY_MS, Workplace
from simulation.clients.transactions.script import Ask, FencedError, GaveUpError, Script, Wait
from simulation.clients.transactions.sender import AGAIN_MS, BatchSender
from simulation.clients.writes.asking import ask_coordinator
from simulation.invariants.atomic_writes.writes import Attempt, Member, WriteRules
from simulation.plans.writes import WritePlan, member_silence_ms
from simulation.schedule import US_PER_MS
from sparklog.model.ids import TopicPartition
from sparklog.model.write_outcomes import MemberState, OpenOutcome
from sparklog.wire.messages.writes.open_write import OpenWriteRequest, OpenWriteTopic

PATIENCE_MS: Final = 4_000
"""How long a task asks for the same."""

SIGNS: Final = 4
"""How many signs of life a task gives in the time in which it may be silent."""

STALL_SHARES: Final = (0.5, 1.5)
"""How long a task stands still, in the time in which it may be silent."""


class AlreadyCommittedError(Exception):
    """There is nothing to write."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a driver is told of an attempt. ``producer_id`` None: there was nothing to write."""

    is_done: bool
    producer_id: int | None = None


class Task(BatchSender):
    """``tell_driver`` is called when the attempt is over, unless it dies."""

    def __init__(
        self,
        place: Workplace,
        plan: WritePlan,
        attempt: Attempt,
        rules: WriteRules,
        partitions: Iterable[TopicPartition],
        tell_driver: Callable[[Message], None],
    ) -> None:
        self.attempt = attempt
        self.is_calm = False
        """Whether nothing happens to it any more."""
        self._plan = plan
        self._writes = rules
        self._partitions = list(partitions)
        self._tell_driver = tell_driver
        self._member: Member | None = None
        self._spoke_us = 0
        self._silence_ms = member_silence_ms(place.seed)
        super().__init__(place, attempt.app, attempt.name, plan.records_max, rules.transactions)

    def live(self) -> Script:
        try:
            yield from self._work()
        except AlreadyCommittedError:
            self._end(Message(is_done=True))
        except (GaveUpError, FencedError):
            self.tell("fails")
            self.hang_up()
            yield from self._withdraw()
            self._end(Message(is_done=False))

    def _end(self, message: Message) -> None:
        self.tell(f"is done: {message.is_done}, {message.producer_id}")
        if message.is_done and not self.is_calm and self._draw.random() < self._plan.lose_share:
            self._place.witness.marks.reach("a task's message was lost")
            return
        self._tell_driver(message)

    def _work(self) -> Script:
        there = [one for one in self._partitions if one in self._place.witness.truths] or self._partitions
        chosen = sorted(
            self._draw.sample(there, self._draw.randint(1, min(self._plan.partitions_max, len(there))))
        )
        for partitions in (chosen[:1], chosen[1:]):
            if partitions:
                member = yield from self._open(partitions)
                batches = [
                    self._make(member, where)
                    for where in partitions
                    for _ in range(self._draw.randint(1, self._plan.batches_max))
                ]
                yield from self._send_all(member, batches)
                yield from self._pause()
        yield from self._meet_fate()
        yield from self._say((), MemberState.FINISHED)
        assert self._member is not None
        self._end(Message(is_done=True, producer_id=self._member.producer_id))

    def _meet_fate(self) -> Script:
        """Before its last word, most of what may happen to an attempt happens."""
        if self.is_calm:
            return
        draw, plan = self._draw.random(), self._plan
        if draw < plan.die_share:
            self.tell("dies")
            self.die()
            yield Wait(1)
        elif draw < plan.die_share + plan.fail_share:
            raise GaveUpError
        elif draw < plan.die_share + plan.fail_share + plan.stall_share:
            self.tell("stands still")
            still_ms = self._draw.choice(STALL_SHARES) * self._silence_ms
            self._place.schedule.after(int(still_ms * US_PER_MS), None, self.process.resume)
            self.process.pause()
            yield Wait(1)

    # ---- the coordinator -----------------------------------------------------------------------------------

    def _open(self, partitions: list[TopicPartition]) -> Generator[Ask | Wait, Any, Member]:
        response = yield from self._say(partitions, MemberState.WORKING)
        if self._member is None:
            self.tell(f"is member {response.producer_id}")
            self._member = self._writes.on_member(
                self.attempt, response.producer_id, self._plan.timeout_ms, self._spoke_us
            )
            self._producer = self._member.producer_id, self._member.producer_epoch
        return self._member

    def _say(
        self, partitions: Iterable[TopicPartition], state: MemberState
    ) -> Generator[Ask | Wait, Any, Any]:
        topics: dict[str, OpenWriteTopic] = {}
        for name, number in partitions:
            topics.setdefault(name, OpenWriteTopic(name=name)).partitions.append(number)
        request = OpenWriteRequest(
            app_id=self.attempt.app,
            app_version=self.attempt.version,
            run=self.attempt.run,
            attempt=self.attempt.name,
            timeout_ms=self._plan.timeout_ms,
            state=state,
            producer_id=-1 if self._member is None else self._member.producer_id,
            topics=list(topics.values()),
        )
        self._writes.on_asked(self.attempt.app, self.attempt.version)
        until_us = self.now_us + PATIENCE_MS * US_PER_MS
        while True:
            asked_us = self.now_us
            response = yield from ask_coordinator(self, self.attempt.app, request, until_us=until_us)
            match response.outcome:
                case OpenOutcome.MEMBER:
                    self._spoke_us = asked_us
                    self._note(state)
                    return response
                case OpenOutcome.ALREADY_COMMITTED:
                    self._writes.on_nothing_to_write(
                        self.attempt.app, self.attempt.version, response.app_version
                    )
                    raise AlreadyCommittedError
                case OpenOutcome.BEING_ENDED if self.now_us < until_us:
                    yield Wait(RETRY_MS)
                case _:
                    self.tell(f"is told {OpenOutcome(response.outcome).name}")
                    raise GaveUpError

    def _note(self, state: MemberState) -> None:
        """The coordinator has heard it. A task that withdraws gives no sign that its write goes on."""
        if self._member is not None and state is not MemberState.ABORTED:
            self._member.spoke_us = self._spoke_us
            self._member.is_finished |= state is MemberState.FINISHED

    def _withdraw(self) -> Script:
        if self._member is None:
            return
        self._member.has_withdrawn = True
        try:
            yield from self._say((), MemberState.ABORTED)
        except (GaveUpError, AlreadyCommittedError):
            self.tell("could not withdraw")

    # ---- pauses --------------------------------------------------------------------------------------------

    def _pause(self) -> Script:
        left_ms = self._draw.expovariate(1 / self._plan.linger_ms)
        step_ms = self._silence_ms / SIGNS
        while left_ms > 0:
            yield Wait(min(left_ms, step_ms))
            left_ms -= step_ms
            yield from self._give_sign_of_life()

    def _before_sending_again(self) -> Script:
        yield Wait(AGAIN_MS)
        yield from self._give_sign_of_life()

    def _give_sign_of_life(self) -> Script:
        if self.now_us - self._spoke_us >= self._silence_ms / SIGNS * US_PER_MS:
            yield from self._say((), MemberState.WORKING)
