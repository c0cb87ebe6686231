"""Commands whose answer waits for brokers: created topics for their leaders, deleted ones for their replicas,
changed columns for everybody who is asked for them.

A wait ends when the awaited broker answers, when it dies (its partitions get other leaders then), or at the
command's own deadline, with REQUEST_TIMED_OUT for what is not done. What was written stays written.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from sparklog.core.controller.actions import Answer, PushId, Send, SendLeaderAndIsr
from sparklog.core.controller.commands.controller_command import CommandId
from sparklog.core.controller.commands.topic_commands import AlteredSchema, TopicResult, TopicsResult
from sparklog.core.controller.state.image import ClusterImage
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId

METADATA_PATIENCE_MS: Final = 1_000
"""How long a creation waits for brokers that lead nothing of it. A broker that hangs must not hold it up:
clients that ask such a broker retry UNKNOWN_TOPIC_OR_PARTITION for a moment.
"""


@dataclass(slots=True)
class _WaitingForBrokers:
    """``leaders`` and ``others`` are the messages that are not answered yet, with the broker of each."""

    leaders: dict[PushId, BrokerId] = field(default_factory=dict)
    others: dict[PushId, BrokerId] = field(default_factory=dict)
    deadline_ms: int = 0
    patience_ms: int = 0

    def await_answers(self, sends: Iterable[Send], leaders: Collection[BrokerId]) -> None:
        for send in sends:
            leads = isinstance(send, SendLeaderAndIsr) and send.broker in leaders
            (self.leaders if leads else self.others)[send.push] = send.broker

    def on_answered(self, push: PushId) -> None:
        self.leaders.pop(push, None)
        self.others.pop(push, None)

    def on_broker_gone(self, broker: BrokerId) -> None:
        self.leaders = {push: one for push, one in self.leaders.items() if one != broker}
        self.others = {push: one for push, one in self.others.items() if one != broker}


@dataclass(slots=True)
class WaitingCreation(_WaitingForBrokers):
    results: list[TopicResult] = field(default_factory=list)
    throttled_until_ms: int = 0
    """Until when the client must wait, by its quota of mutations."""

    def outcome(self, image: ClusterImage, now_ms: int) -> TopicsResult | None:
        """The answer, once it is time for one."""
        if not self.leaders and (not self.others or now_ms >= self.patience_ms):
            return TopicsResult(tuple(self.results), max(0, self.throttled_until_ms - now_ms))
        if now_ms < self.deadline_ms:
            return None
        late = tuple(_timed_out(result, "created") for result in self.results)
        return TopicsResult(late, max(0, self.throttled_until_ms - now_ms))


@dataclass(slots=True)
class WaitingSchemaChange(_WaitingForBrokers):
    """It is answered when the live brokers know the version, or have had their time: what does not know it
    yet refuses rows of it, and they are sent again.
    """

    result: AlteredSchema = field(default_factory=AlteredSchema)

    def outcome(self, image: ClusterImage, now_ms: int) -> AlteredSchema | None:
        """The answer, once it is time for one."""
        is_known = not self.leaders and not self.others
        return self.result if is_known or now_ms >= self.patience_ms else None


@dataclass(slots=True)
class WaitingDeletion:
    results: list[TopicResult] = field(default_factory=list)
    deadline_ms: int = 0
    throttled_until_ms: int = 0
    """As in ``WaitingCreation``."""

    def outcome(self, image: ClusterImage, now_ms: int) -> TopicsResult | None:
        """The answer, once no live broker has the topics any more, or at the deadline."""
        pending = {result.name for result in self.results if _is_held_by_live_broker(image, result)}
        if pending and now_ms < self.deadline_ms:
            return None
        return TopicsResult(
            tuple(
                _timed_out(result, "marked for deletion") if result.name in pending else result
                for result in self.results
            ),
            max(0, self.throttled_until_ms - now_ms),
        )


def _is_held_by_live_broker(image: ClusterImage, result: TopicResult) -> bool:
    deletion = image.deletions.get(result.name)
    if deletion is None or result.error != ErrorCode.none:
        return False
    return any(broker in image.brokers for broker in deletion.awaiting)


def _timed_out(result: TopicResult, done: str) -> TopicResult:
    if result.error != ErrorCode.none:
        return result
    message = f"Topic '{result.name}' is {done}, but its brokers have not confirmed it in time."
    return replace(result, error=ErrorCode.request_timed_out, message=message)


@dataclass(slots=True)
class WaitingCommands:
    """All commands that wait. Commands in ``written`` have nothing left to write; the others collect
    results.
    """

    creations: dict[CommandId, WaitingCreation] = field(default_factory=dict)
    deletions: dict[CommandId, WaitingDeletion] = field(default_factory=dict)
    schema_changes: dict[CommandId, WaitingSchemaChange] = field(default_factory=dict)
    written: dict[CommandId, WaitingCreation | WaitingDeletion | WaitingSchemaChange] = field(
        default_factory=dict
    )

    def on_answered(self, push: PushId) -> None:
        for waiting in (*self.creations.values(), *self.schema_changes.values()):
            waiting.on_answered(push)

    def on_broker_gone(self, broker: BrokerId) -> None:
        for waiting in (*self.creations.values(), *self.schema_changes.values()):
            waiting.on_broker_gone(broker)

    def take_finished(self, image: ClusterImage, now_ms: int) -> list[Answer]:
        """The answers that are due; their commands wait no more."""
        answers = []
        for command, waiting in list(self.written.items()):
            result = waiting.outcome(image, now_ms)
            if result is not None:
                answers.append(Answer(command, result))
                self.written.pop(command)
                self.creations.pop(command, None)
                self.deletions.pop(command, None)
                self.schema_changes.pop(command, None)
        return answers

    def check_invariants(self) -> None:
        """What holds while no step is left."""
        waiting = self.creations.keys() | self.deletions.keys() | self.schema_changes.keys()
        assert self.written.keys() == waiting
