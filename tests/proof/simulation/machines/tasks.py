"""What threads do in a broker, done as events: fetching, proposing ISRs, following the controller, chores.

Each task is a counterpart of a thread wrapper of ``sparklog.broker`` and drives the same shipped object; what
it adds is only when the next step comes.
"""

import contextlib
import random
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Literal

from simulation.machines.network import Call, Network
from simulation.schedule import US_PER_MS, Event, Process, ProcessDied
from sparklog.broker.following.fetcher import Conversation, Fetcher
from sparklog.broker.following.follow_table import FollowTable
from sparklog.broker.life.housekeeping import chores_of
from sparklog.broker.life.server import LOST_LOGS_TIMEOUT_MS, WITHDRAW_RETRY_MS, lost_logs_request
from sparklog.broker.log_cleaner import Cleaning, LogCleaner
from sparklog.broker.partition.partition import Partition
from sparklog.broker.replica_manager import ReplicaManager
from sparklog.broker.to_controller.controller_link import LOOK_AGAIN_SECONDS
from sparklog.broker.to_controller.isr_proposals import RETRY_MS, Batch, ProposalQueue
from sparklog.core.controller.state.znodes import CONTROLLER, broker_path, decode_controller
from sparklog.core.replication.actions import ProposeIsr
from sparklog.model.config import BrokerConfig
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicId, TopicPartition
from sparklog.model.zookeeper import ZooKeeper, ZooKeeperError
from sparklog.wire.messages.control.assign_replicas_to_dirs import AssignReplicasToDirsResponse

Stage = Literal["under way", "done", "given up"]

TURN_US: Final = 50
"""What a turn of a loop takes at least."""


class FetcherTasks:
    """``replica_manager.Fetchers``; the counterpart of ``FetcherThreads``."""

    def __init__(
        self, process: Process, host: str, network: Network, new_fetcher: Callable[[BrokerId], Fetcher]
    ) -> None:
        self._process = process
        self._host = host
        self._network = network
        self._new_fetcher = new_fetcher
        self._loops: dict[BrokerId, _FetchLoop] = {}
        self._followed: FollowTable[_FetchLoop] = FollowTable()

    def start(self, partition: Partition, leader: BrokerId) -> None:
        loop = self._loops.get(leader)
        if loop is None:
            loop = _FetchLoop(self._process, self._host, self._network, self._new_fetcher(leader))
            self._loops[leader] = loop
        self._followed.follow(partition, loop)
        loop.wake()

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def stop(self, partition: Partition) -> None:
        self._followed.stop(partition)

    def ask_leader_offsets(self, partition: Partition) -> None:
        if (loop := self._followed.runner_of(partition)) is not None:
            loop.fetcher.ask_leader_offsets(partition)

    def back_off(self, partition: Partition, error: ErrorCode) -> None:
        if (loop := self._followed.runner_of(partition)) is not None:
            loop.fetcher.back_off(partition)


class _FetchLoop:
    """Round after round of one fetcher."""

    def __init__(self, process: Process, host: str, network: Network, fetcher: Fetcher) -> None:
        self.fetcher = fetcher
        self._process = process
        self._host = host
        self._network = network
        self._conversation: Conversation | None = None
        self._call: Call | None = None
        self._next_round: Event | None = None

    def wake(self) -> None:
        """Begin a round at once; one that waits for its leader is cut short."""
        if self._call is not None:
            self._call.abandon()
        elif self._conversation is None:
            self._begin_after(0)

    def _begin_after(self, delay_us: int) -> None:
        if self._next_round is not None:
            self._next_round.cancel()
        self._next_round = self._process.schedule.after(max(delay_us, TURN_US), self._process, self._begin)

    def _begin(self) -> None:
        self._next_round = None
        self._conversation = self.fetcher.round()
        self._go_on(next)

    def _go_on(self, turn: Callable[[Conversation], Any]) -> None:
        conversation = self._conversation
        assert conversation is not None
        try:
            question = turn(conversation)
        except StopIteration as end:
            self._conversation = None
            self._begin_after(end.value * US_PER_MS)
            return
        self._call = self._network.call(
            self._process,
            self._host,
            question.broker.host,
            question.message,
            timeout_ms=question.timeout_ms,
            on_response=self._answered,
            on_failure=self._failed,
        )

    def _answered(self, response: Any) -> None:
        self._call = None
        self._go_on(lambda conversation: conversation.send(response))

    def _failed(self, error: OSError) -> None:
        self._call = None
        self._go_on(lambda conversation: conversation.throw(error))


class LinkTask:
    """Follows ``/controller``; the counterpart of ``ControllerLink``."""

    def __init__(self, process: Process, host: str, network: Network, zookeeper: ZooKeeper) -> None:
        self.generation = 0
        self._process = process
        self._host = host
        self._network = network
        self._zookeeper = zookeeper
        self.address: str | None = None
        """Of whom it takes for the controller."""
        self._calls: list[Call] = []
        self._on_change: list[Callable[[], None]] = []

    def start(self) -> None:
        self._process.soon(self._look)

    def on_change(self, callback: Callable[[], None]) -> None:
        self._on_change.append(callback)

    def call(
        self,
        message: Any,
        *,
        timeout_ms: int,
        on_response: Callable[[Any], None],
        on_failure: Callable[[OSError], None],
    ) -> None:
        if self.address is None:
            error = ConnectionError("no controller is elected")
            self._process.soon(lambda: on_failure(error))
            return
        call = self._network.call(
            self._process,
            self._host,
            self.address,
            message,
            timeout_ms=timeout_ms,
            on_response=on_response,
            on_failure=on_failure,
        )
        if call is not None:
            self._calls = [other for other in self._calls if other.connection.is_open] + [call]

    def _look(self) -> None:
        try:
            self._zookeeper.watch_data(CONTROLLER, lambda: self._process.soon(self._look))
            node = self._zookeeper.get(CONTROLLER)
        except ZooKeeperError:
            delay_us = int(LOOK_AGAIN_SECONDS * 1_000 * US_PER_MS)
            self._process.schedule.after(delay_us, self._process, self._look)
            return
        address = None if node is None else decode_controller(node.data).host
        if address == self.address:
            return
        self.address = address
        self.generation += 1
        calls, self._calls = self._calls, []
        for call in calls:
            call.abandon()
        for callback in self._on_change:
            callback()


class LostLogsTask:
    """Tells the controller which replicas went offline until it has heard; the counterpart of
    ``BrokerServer._tell_controller``."""

    def __init__(
        self, process: Process, link: LinkTask, broker_id: BrokerId, broker_epoch: Callable[[], BrokerEpoch]
    ) -> None:
        self._process = process
        self._link = link
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch

    def report(self, lost: list[tuple[TopicId, int]]) -> None:
        self._process.soon(lambda: self._tell(lost))

    def _tell(self, lost: list[tuple[TopicId, int]]) -> None:
        def answered(response: AssignReplicasToDirsResponse) -> None:
            if response.error_code is not ErrorCode.none:
                self._tell_later(lost)

        self._link.call(
            lost_logs_request(self._broker_id, self._broker_epoch(), lost),
            timeout_ms=LOST_LOGS_TIMEOUT_MS,
            on_response=answered,
            on_failure=lambda error: self._tell_later(lost),
        )

    def _tell_later(self, lost: list[tuple[TopicId, int]]) -> None:
        delay_us = WITHDRAW_RETRY_MS * US_PER_MS
        self._process.schedule.after(delay_us, self._process, lambda: self._tell(lost))


class RegistrationTask:
    """Notices when the registration was taken away; the counterpart of ``RegistrationWatch``."""

    def __init__(
        self,
        process: Process,
        zookeeper: ZooKeeper,
        broker: BrokerId,
        epoch: BrokerEpoch,
        lost: Callable[[str], None],
    ) -> None:
        self._process = process
        self._zookeeper = zookeeper
        self._path = broker_path(broker)
        self._epoch = epoch
        self._lost = lost

    def start(self) -> None:
        self._process.soon(self._look)

    def _look(self) -> None:
        try:
            self._zookeeper.watch_data(self._path, lambda: self._process.soon(self._look))
            stat = self._zookeeper.exists(self._path)
        except ZooKeeperError:
            delay_us = int(LOOK_AGAIN_SECONDS * 1_000 * US_PER_MS)
            self._process.schedule.after(delay_us, self._process, self._look)
            return
        if stat is None or stat.czxid != self._epoch:
            self._lost(f"its registration of epoch {self._epoch} was taken away: others may lead instead")


class ProposalTask:
    """``ports.IsrProposals``; the counterpart of ``IsrProposalSender``."""

    def __init__(self, process: Process, link: LinkTask, queue: ProposalQueue) -> None:
        self._process = process
        self._link = link
        self._queue = queue
        self._is_busy = False
        self._retry: Event | None = None
        link.on_change(self._controller_changed)

    def propose(self, topic_partition: TopicPartition, proposal: ProposeIsr) -> None:
        self._queue.put(topic_partition, proposal)
        if not self._is_busy:
            self._is_busy = True
            self._process.soon(self._send)

    def _send(self) -> None:
        self._retry = None
        batch = self._queue.take_all()
        self._is_busy = bool(batch)
        if not batch:
            return
        generation = self._link.generation
        self._link.call(
            self._queue.request(batch),
            timeout_ms=self._queue.answer_ms,
            on_response=lambda response: self._answered(batch, response, generation),
            on_failure=lambda error: self._failed(batch, error, generation),
        )

    def _answered(self, batch: Batch, response: Any, generation: int) -> None:
        again = self._queue.on_response(batch, response)
        if again:
            self._send_later(again, generation)
        else:
            self._send()

    def _failed(self, batch: Batch, error: OSError, generation: int) -> None:
        self._queue.on_failure(error)
        self._send_later(batch, generation)

    def _send_later(self, again: Batch, generation: int) -> None:
        """After a pause, but at once if there is another controller than the one that was asked."""
        self._queue.put_back(again)
        if self._link.generation != generation:
            self._queue.on_new_controller()
            self._process.soon(self._send)
            return
        self._retry = self._process.schedule.after(RETRY_MS * US_PER_MS, self._process, self._send)

    def _controller_changed(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
            self._queue.on_new_controller()
            self._process.soon(self._send)


class ChoreTasks:
    """The counterpart of ``Housekeeping``."""

    def __init__(self, process: Process, replicas: ReplicaManager, config: BrokerConfig) -> None:
        self._process = process
        self._chores = chores_of(replicas, config)

    def start(self) -> None:
        for index in range(len(self._chores)):
            self._later(index)

    def _later(self, index: int) -> None:
        interval_us = self._chores[index][0] * US_PER_MS
        self._process.schedule.after(interval_us, self._process, lambda: self._do(index))

    def _do(self, index: int) -> None:
        self._chores[index][1]()
        self._later(index)


class CleanerTask:
    """The counterpart of ``CleanerThreads``: a round goes step by step, with everything else in between.

    ``on_step`` hears which log was worked on, and how far the round is.
    """

    def __init__(
        self,
        process: Process,
        cleaner: LogCleaner,
        config: BrokerConfig,
        draw: random.Random,
        on_step: Callable[[TopicPartition, Stage], None],
    ) -> None:
        self._process = process
        self._cleaner = cleaner
        self._draw = draw
        self._on_step = on_step
        self._backoff_us = config.get_int("log.cleaner.backoff.ms") * US_PER_MS
        self._steps: Generator[int, None, None] | None = None
        self._is_busy = False

    def start(self) -> None:
        self._later(self._backoff_us, self._look)

    def abandon(self) -> None:
        """The process is gone: what a round has half done stays as it is on disk."""
        steps, self._steps = self._steps, None
        if steps is not None and not self._is_busy:
            with contextlib.suppress(ProcessDied):  # a dead process tidies nothing up
                steps.close()

    def _later(self, delay_us: int, action: Callable[[], None]) -> None:
        self._process.schedule.after(delay_us, self._process, action)

    def _look(self) -> None:
        cleaning = self._cleaner.next()
        if cleaning is None:
            self._later(self._backoff_us, self._look)
            return
        self._steps = cleaning.run()
        self._go_on(cleaning)

    def _go_on(self, cleaning: Cleaning) -> None:
        assert self._steps is not None
        topic_partition = cleaning.topic_partition
        report_before = self._cleaner._last.get(topic_partition)
        self._is_busy = True
        try:
            next(self._steps)
        except StopIteration:
            self._steps = None
        finally:
            self._is_busy = False
        stage: Stage = "under way"
        if self._steps is None:
            stage = "given up" if self._cleaner._last.get(topic_partition) is report_before else "done"
        self._on_step(topic_partition, stage)
        delay_us = int(self._draw.uniform(0, 3) * US_PER_MS)
        self._later(delay_us, (lambda: self._go_on(cleaning)) if stage == "under way" else self._look)
