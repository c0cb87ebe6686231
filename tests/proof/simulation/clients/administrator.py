"""An administrator: requests to the controller or to leaders, as a client's admin tools send them.

Each request is an errand. It is sent again, to the other controller too, until there is a definite answer or
its time is up. Nothing waits for its outcome: the witness reads ZooKeeper.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from simulation.machines.broker import Machine
from simulation.machines.network import Network
from simulation.plans.operations import Operation
from simulation.schedule import US_PER_MS, Process, Schedule
from simulation.story import Story
from simulation.truth import PartitionTruth
from simulation.witness import Witness
from sparklog.client.transactions.transaction_admin import FIRST_COORDINATOR_EPOCH
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.model.kafka_numbers import BROKER_RESOURCE, TOPIC_RESOURCE
from sparklog.wire.messages.admin.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from sparklog.wire.messages.admin.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sparklog.wire.messages.admin.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from sparklog.wire.messages.admin.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sparklog.wire.messages.admin.elect_leaders import (
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersTopicPartitions,
)
from sparklog.wire.messages.admin.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementallyAlterableConfig,
)
from sparklog.wire.messages.admin.operate_brokers import OperateBrokersRequest
from sparklog.wire.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from sparklog.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

HOST: Final = "administrator"
PATIENCE_MS: Final = 3_000
"""How long an errand is repeated."""

RETRY_MS: Final = 100
CALL_TIMEOUT_MS: Final = 1_200
REQUEST_TIMEOUT_MS: Final = 1_000
DEMANDS_LATE_MS: Final = 10_000
"""How long after its answer a copy of a demand for an unclean election may come true: frames are late, and
sent twice, and controllers stand still, or wait for ZooKeeper, with what they were asked."""

PARTITIONS_MAX: Final = 3
NO_THROTTLE: Final = -1
"""Of a request to move partitions, for no limit."""

INTERNAL: Final = INTERNAL_TOPICS

ELECTIONS: Final = {"elect preferred": ElectionType.preferred, "elect unclean": ElectionType.unclean}

AGAIN: Final = frozenset(
    {ErrorCode.not_controller, ErrorCode.request_timed_out, ErrorCode.unknown_server_error}
)


class Administrator:
    """Carries out a run's operations. The topic ``main`` stays, ``side`` comes and goes."""

    def __init__(
        self,
        schedule: Schedule,
        network: Network,
        witness: Witness,
        story: Story,
        *,
        main: str,
        side: str,
        brokers: tuple[str, ...],
        controllers: tuple[str, ...],
        machines: Mapping[str, Machine],
    ) -> None:
        self.process = Process(schedule, HOST)
        self.moves_pending = 0
        """Requests for moves whose outcome is not known yet."""
        self.errands = 0
        """How many go on: each may still change something."""
        self.accepted = 0
        """Requests that somebody did, or began."""
        self.side_configs: Mapping[str, str] = {}
        """Of the topic that comes and goes, beside those that it is created with for the first time."""
        self._schedule = schedule
        self._network = network
        self._witness = witness
        self._story = story
        self._main = main
        self._side = side
        self._brokers = brokers
        self._controllers = controllers
        self._machines = machines
        """By the name of their place; another machine in it has another address."""

    def do(self, operation: Operation) -> None:
        """Begin an operation; whether it comes to anything depends."""
        draw, witness = operation.draw, self._witness
        self._story.tell(HOST, str(operation))
        truths = [one for tp, one in witness.truths.items() if one.state is not None]
        if not truths:
            return
        truth = truths[int(draw * 997) % len(truths)]
        if truth.topic_partition.topic in INTERNAL and operation.kind == "delete records":
            return  # brokers refuse that
        match operation.kind:
            case "create topic":
                self._create()
            case "delete topic" | "create topic again":
                self._delete(again=operation.kind == "create topic again")
            case "move":
                self._move(truth, draw)
            case "cancel move":
                self._cancel(truths)
            case "add partition":
                self._add_partition()
            case "raise minimum" | "lower minimum":
                self._configure(
                    truth, "min.insync.replicas", "2" if operation.kind == "raise minimum" else "1"
                )
            case "allow unclean elections" | "forbid unclean elections":
                allowed = str(operation.kind == "allow unclean elections").lower()
                self._configure(truth, "unclean.leader.election.enable", allowed)
            case "elect preferred" | "elect unclean":
                self._elect(truth, ELECTIONS[operation.kind])
            case "elect without store":
                self._give_up_store(truths)
            case "delete records":
                self._delete_records(truth, draw)

    # ---- topics --------------------------------------------------------------------------------------------

    def _create(self) -> None:
        topic = self._side_topic({"segment.bytes": "700", **self.side_configs})
        self._ask(
            CreateTopicsRequest(topics=[topic], timeout_ms=REQUEST_TIMEOUT_MS),
            lambda response: response.topics[0].error_code,
        )

    def _side_topic(self, configs: Mapping[str, str]) -> CreatableTopic:
        given = [CreatableTopicConfig(name=name, value=value) for name, value in configs.items()]
        return CreatableTopic(name=self._side, num_partitions=1, replication_factor=3, configs=given)

    def _delete(self, *, again: bool) -> None:
        topics = [DeleteTopicState(name=self._side)]
        self._ask(
            DeleteTopicsRequest(topics=topics, timeout_ms=REQUEST_TIMEOUT_MS),
            lambda response: response.responses[0].error_code,
            then=self._create_when_it_is_gone if again else None,
        )

    def _create_when_it_is_gone(self) -> None:
        """As soon as the name is free, by whichever controller is in charge."""
        deadline_ms = self._schedule.now_ms + PATIENCE_MS
        turn = 0
        self.errands += 1

        def ask() -> None:
            if self._side in self._witness.seen_topics or self._schedule.now_ms >= deadline_ms:
                self.errands -= 1
                return
            topic = self._side_topic(self.side_configs)
            self._ask_controller(
                CreateTopicsRequest(topics=[topic], timeout_ms=REQUEST_TIMEOUT_MS), turn, look, later
            )

        def look(response: Any) -> None:
            if response.topics[0].error_code is ErrorCode.none:
                self.accepted += 1
                self.errands -= 1
            else:
                later()

        def later() -> None:
            nonlocal turn
            turn += 1
            self._schedule.after(20 * US_PER_MS, self.process, ask)

        ask()

    def _add_partition(self) -> None:
        seen = self._witness.seen_topics.get(self._main)
        if seen is None or len(seen.node.assignments) >= PARTITIONS_MAX:
            return
        topic = CreatePartitionsTopic(name=self._main, count=len(seen.node.assignments) + 1)
        self._ask(
            CreatePartitionsRequest(topics=[topic], timeout_ms=REQUEST_TIMEOUT_MS),
            lambda response: response.results[0].error_code,
        )

    def _configure(self, truth: PartitionTruth, name: str, value: str) -> None:
        topic = truth.topic_partition.topic
        resource = IncrementalAlterConfigsResource(
            resource_type=TOPIC_RESOURCE,
            resource_name=topic,
            configs=[IncrementallyAlterableConfig(name=name, value=value)],
        )
        self._ask(
            IncrementalAlterConfigsRequest(resources=[resource]),
            lambda response: response.responses[0].error_code,
        )

    def configure_broker(self, broker: int, configs: Mapping[str, str]) -> None:
        """Set these of one broker, as Kafka's own tools do."""
        resource = IncrementalAlterConfigsResource(
            resource_type=BROKER_RESOURCE,
            resource_name=str(broker),
            configs=[IncrementallyAlterableConfig(name=name, value=value) for name, value in configs.items()],
        )
        self._ask(
            IncrementalAlterConfigsRequest(resources=[resource]),
            lambda response: response.responses[0].error_code,
        )

    # ---- partitions ----------------------------------------------------------------------------------------

    def move_with_throttle(self, draw: float, throttle: int) -> None:
        """Some partition, with at most so many bytes a second."""
        truths = [one for one in self._witness.truths.values() if one.state is not None]
        if truths:
            self._move(truths[int(draw * 997) % len(truths)], draw, throttle)

    def _move(self, truth: PartitionTruth, draw: float, throttle: int = NO_THROTTLE) -> None:
        """To two or three brokers, in some order."""
        if self.has_damage:
            return  # those that stay might be damaged ones: more than a move promises to survive
        numbers = list(range(1, len(self._brokers) + 1))
        target: list[int] = []
        dice = int(draw * 10**9)
        for _ in range(2 + dice % 2):
            dice //= 7
            target.append(numbers.pop(dice % len(numbers)))
        self._reassign(truth, target, throttle)

    def _cancel(self, truths: list[PartitionTruth]) -> None:
        for truth in truths:
            if (truth.assignment.adding or truth.assignment.removing) and not truth.tainted:
                self._reassign(truth, None)
                return

    def _reassign(self, truth: PartitionTruth, target: list[int] | None, throttle: int = NO_THROTTLE) -> None:
        topic, number = truth.topic_partition
        partitions = [ReassignablePartition(partition_index=number, replicas=target)]
        self.moves_pending += 1

        def done() -> None:
            self.moves_pending -= 1

        self._ask(
            AlterPartitionReassignmentsRequest(
                topics=[ReassignableTopic(name=topic, partitions=partitions)],
                timeout_ms=REQUEST_TIMEOUT_MS,
                throttle=throttle,
            ),
            lambda response: response.error_code,
            finally_=done,
        )

    @property
    def has_damage(self) -> bool:
        """Whether a replica may have lost records."""
        return any(one.tainted for one in self._witness.truths.values())

    def operate(self, request: OperateBrokersRequest, finally_: Callable[[], None]) -> None:
        """Somebody wants this done to brokers, which may move replicas."""
        self.moves_pending += 1

        def done() -> None:
            self.moves_pending -= 1
            finally_()

        self._ask(request, lambda response: response.error_code, finally_=done)

    def _give_up_store(self, truths: list[PartitionTruth]) -> None:
        for truth in truths:
            if truth.topic_partition.topic == self._main:
                self._elect(truth, ElectionType.unclean, without_store=True)

    def elect_unclean(self, truth: PartitionTruth) -> None:
        """A person's choice, not the run's: see ``operators.last_resort``."""
        self._elect(truth, ElectionType.unclean)

    def _elect(self, truth: PartitionTruth, kind: ElectionType, *, without_store: bool = False) -> None:
        topic, number = truth.topic_partition
        is_demanded = kind is ElectionType.unclean
        truth.demands += is_demanded

        def done() -> None:
            if is_demanded:
                truth.demands -= 1
                truth.demanded_until_ms = self._schedule.now_ms + DEMANDS_LATE_MS

        self._ask(
            ElectLeadersRequest(
                election_type=kind,
                topic_partitions=[ElectLeadersTopicPartitions(topic=topic, partitions=[number])],
                timeout_ms=REQUEST_TIMEOUT_MS,
                without_store=1 if without_store else -1,
            ),
            lambda response: response.error_code,
            finally_=done,
        )

    def _delete_records(self, truth: PartitionTruth, draw: float) -> None:
        """A part of what is committed, or all of it."""
        assert truth.state is not None
        if not truth.state.has_leader:
            return
        whole = draw > 0.85
        offset = truth.committed_end if whole else int(draw * truth.committed_end)
        truth.deleted_end = max(truth.deleted_end, offset)
        topic, number = truth.topic_partition
        partitions = [DeleteRecordsPartition(partition_index=number, offset=offset)]
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=REQUEST_TIMEOUT_MS
        )

        def count(response: Any) -> None:
            self.accepted += is_accepted(response)

        self._call_leader(truth.state, request, count)

    def abort_hanging(
        self, truth: PartitionTruth, producer_id: int, producer_epoch: int, coordinator_epoch: int
    ) -> None:
        """As ``sparklog transactions abort`` does: have the partition's leader write an abort's marker."""
        assert truth.state is not None
        topic, number = truth.topic_partition
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[number])],
            coordinator_epoch=max(coordinator_epoch, FIRST_COORDINATOR_EPOCH),
        )

        def tell(response: Any) -> None:
            outcome = "done" if is_accepted(response) else str(response)
            self._story.tell(HOST, f"abort of producer {producer_id} in {truth.topic_partition}: {outcome}")

        request = WriteTxnMarkersRequest(markers=[marker])
        self._call_leader(truth.state, request, tell)

    # ---- errands -------------------------------------------------------------------------------------------

    def _ask(
        self,
        request: Any,
        error_of: Callable[[Any], ErrorCode],
        *,
        then: Callable[[], None] | None = None,
        finally_: Callable[[], None] = lambda: None,
    ) -> None:
        """Ask the controllers in turn until one decides; ``then`` follows a success, ``finally_`` the end."""
        deadline_ms = self._schedule.now_ms + PATIENCE_MS
        turn = 0
        self.errands += 1

        def end() -> None:
            self.errands -= 1
            finally_()

        def ask() -> None:
            self._ask_controller(request, turn, decide, again)

        def decide(response: Any) -> None:
            error = error_of(response)
            self._story.tell(HOST, f"{type(request).__name__}: {error.name}")
            if error in AGAIN:
                again()
                return
            end()
            self.accepted += is_accepted(response)
            if then is not None and error is ErrorCode.none:
                then()

        def again() -> None:
            nonlocal turn
            turn += 1
            if self._schedule.now_ms > deadline_ms:
                end()
            else:
                self._schedule.after(RETRY_MS * US_PER_MS, self.process, ask)

        ask()

    def _ask_controller(
        self, request: Any, turn: int, on_response: Callable[[Any], None], on_failure: Callable[[], None]
    ) -> None:
        self._call(self._controllers[turn % len(self._controllers)], request, on_response, on_failure)

    def _call_leader(self, state: PartitionState, request: Any, on_response: Callable[[Any], None]) -> None:
        """Once, where the leader listens now."""
        machine = self._machines[f"broker-{state.leader}"]
        self._call(machine.address, request, on_response, lambda: None)

    def _call(
        self,
        host: str,
        request: Any,
        on_response: Callable[[Any], None],
        on_failure: Callable[[], None],
    ) -> None:
        self._network.call(
            self.process,
            HOST,
            host,
            request,
            timeout_ms=CALL_TIMEOUT_MS,
            on_response=on_response,
            on_failure=lambda error: on_failure(),
        )


def is_accepted(response: Any) -> bool:
    """Whether no part of an answer has an error."""
    if isinstance(response, list):
        return all(is_accepted(one) for one in response)
    if isinstance(response, ErrorCode):
        return response is ErrorCode.none
    if not is_dataclass(response):
        return True
    return all(is_accepted(getattr(response, one.name)) for one in fields(response))
