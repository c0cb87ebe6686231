"""What the controller still has to do: partitions to check, steps to take, messages to send, commands to
answer.

The machine (``sparklog.core.controller.machine``) decides when the next step is taken, and reports the
outcome of its write. Refused and lost writes are not known here: the machine adds such a step again, and it
is decided over the image as it is by then.
"""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from sparklog.core.controller.actions import Disconnect, PushId, Send, SendStopReplica
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations.looks import OperationLooks
from sparklog.core.controller.pipeline.decision_events import Cause
from sparklog.core.controller.pipeline.pushes import PendingPushes
from sparklog.core.controller.pipeline.waiting_commands import WaitingCommands
from sparklog.core.controller.quotas.mutations import Mutations
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.operations import OperationState
from sparklog.core.controller.steps import (
    AddPartitions,
    CreateTopic,
    Decision,
    Elect,
    FailBrokers,
    FinishCreation,
    FinishSchemaChange,
    StartBrokers,
    Step,
)
from sparklog.core.recent_events import RecentEvents
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition


@dataclass(slots=True)
class PendingWork:
    """The cluster's image, and the work that it gives rise to."""

    image: ClusterImage
    events: RecentEvents
    unchecked: dict[TopicPartition, None] = field(default_factory=dict)
    """Partitions that may need an election, in order. They are checked before the next step is taken."""
    steps: deque[Step] = field(default_factory=deque)
    pushes: PendingPushes = field(default_factory=PendingPushes)
    stops: dict[PushId, SendStopReplica] = field(default_factory=dict)
    """Messages that stop replicas, until they are answered: deletions wait for the answers."""
    waiting: WaitingCommands = field(default_factory=WaitingCommands)
    mutations: Mutations = field(default_factory=Mutations)
    looks: OperationLooks = field(default_factory=OperationLooks)
    cause: Cause | None = None
    """Why there is work, until none is left."""
    ends: dict[tuple[BrokerId, BrokerEpoch], str] = field(default_factory=dict)
    """How the processes of incarnations ended that still have to leave the image, from their supervisors."""
    ended_operations: Counter[tuple[OperationKind, OperationState]] = field(default_factory=Counter)
    """Those that ended in this term, by kind and result."""

    # ------------------------------------------------------------------------- partitions and steps

    def check(self, partitions: Iterable[TopicPartition]) -> None:
        """Check these partitions for an election that they need."""
        self.unchecked.update(dict.fromkeys(partitions))

    def add(self, step: Step) -> None:
        self.steps.append(step)

    def add_first(self, step: Step) -> None:
        self.steps.appendleft(step)

    @property
    def has_failures(self) -> bool:
        """Whether the next step is about brokers that failed: they must leave the image before any
        election.
        """
        return bool(self.steps) and isinstance(self.steps[0], FailBrokers)

    def start_over(self) -> None:
        """The image is new: send everything to every broker, and check every partition."""
        self.pushes.starting.update(self.image.brokers)
        self.pushes.brokers_changed = True
        self.unchecked = dict.fromkeys(partition for partition, _ in self.image.partitions())

    def forget_news_of_brokers(self) -> None:
        """Drop steps with older news of brokers than was just read. A broker in both would be started
        twice.
        """
        kept = (step for step in self.steps if not isinstance(step, FailBrokers | StartBrokers))
        self.steps = deque(kept)

    # ------------------------------------------------------------------------- messages to brokers

    def flush(self) -> list[Send]:
        """The messages about everything that was written since the last flush."""
        sends = self.pushes.flush(self.image)
        self.stops.update({send.push: send for send in sends if isinstance(send, SendStopReplica)})
        return sends

    def must_hold_pushes(self, decision: Decision) -> bool:
        """Whether messages must wait until ``decision`` is written.

        A creation sends one message about all its topics to each broker, and waits for the answers to those;
        so does a change of columns.

        A broker that is sent everything must not be sent what an election is about to change. If it restarted
        without the records that it had as leader, it would lead its old epoch again, and its followers would
        cut their logs.
        """
        is_creating = any(
            isinstance(step, CreateTopic | AddPartitions | FinishCreation | FinishSchemaChange)
            for step in self.steps
        )
        return is_creating or (bool(self.pushes.starting) and isinstance(decision.step, Elect))

    def lose_channel(self, broker: BrokerId, epoch: BrokerEpoch) -> Disconnect:
        """Close the channel to this incarnation. It will answer none of the messages that it was sent."""
        self.waiting.on_broker_gone(broker)
        self.stops = {push: stop for push, stop in self.stops.items() if stop.broker != broker}
        return Disconnect(broker, epoch)

    def check_nothing_left(self) -> None:
        """What holds while nothing is being asked of ZooKeeper."""
        assert not self.steps, list(self.steps)
        assert not self.unchecked, list(self.unchecked)
        assert self.pushes.is_empty, self.pushes
        self.waiting.check_invariants()
