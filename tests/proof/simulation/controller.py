"""A simulated controller candidate: the shipped ``Candidate``, ``Term`` and machine over simulated ports."""

import uuid
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from simulation.broker import World
from simulation.network import Call
from simulation.schedule import US_PER_MS, Process, ProcessTimer, dice
from sparklog.controller.broker_channels import BACKOFF_MAX_MS, BACKOFF_MS
from sparklog.controller.candidate import Candidate
from sparklog.controller.handlers import ControllerHandlers
from sparklog.controller.messages import push_answer, push_request
from sparklog.controller.ports import AnswerCommand
from sparklog.core.controller.actions import PushAnswer, Send
from sparklog.core.controller.commands.command import Command
from sparklog.core.controller.state.znodes import ControllerNode
from sparklog.model.cluster import Broker
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch

PORT: Final = 9091

OnAnswer = Callable[[PushAnswer], None]


class ChannelTask:
    """The counterpart of ``BrokerChannel``: sends in order, each message until it is answered."""

    def __init__(
        self,
        world: World,
        process: Process,
        host: str,
        broker: Broker,
        epoch: ControllerEpoch,
        tell: OnAnswer,
    ) -> None:
        self.broker = broker
        self._world = world
        self._process = process
        self._host = host
        self._epoch = epoch
        self._tell = tell
        self._queue: deque[Send] = deque()
        self._is_busy = False
        self._is_closed = False
        self._call: Call | None = None
        self._backoff_ms = BACKOFF_MS

    def send(self, send: Send) -> None:
        self._queue.append(send)
        if not self._is_busy:
            self._is_busy = True
            self._process.soon(self._next)

    def close(self) -> None:
        self._is_closed = True
        self._queue.clear()
        if self._call is not None:
            self._call.abandon()

    def _next(self) -> None:
        self._is_busy = bool(self._queue) and not self._is_closed
        if self._is_busy:
            self._backoff_ms = BACKOFF_MS
            self._deliver(self._queue.popleft())

    def _deliver(self, send: Send) -> None:
        if self._is_closed:
            return
        self._call = self._world.network.call(
            self._process,
            self._host,
            self.broker.host,
            push_request(send, self._epoch),
            timeout_ms=self._world.config.get_int("request.timeout.ms"),
            on_response=lambda response: self._answered(send, response),
            on_failure=lambda error: self._failed(send),
        )

    def _answered(self, send: Send, response: Any) -> None:
        self._call = None
        if not self._is_closed:
            self._tell(push_answer(send, response))
            self._next()

    def _failed(self, send: Send) -> None:
        self._call = None
        self._process.schedule.after(self._backoff_ms * US_PER_MS, self._process, lambda: self._deliver(send))
        self._backoff_ms = min(2 * self._backoff_ms, BACKOFF_MAX_MS)


class ChannelTasks:
    """``controller.ports.Channels``; the counterpart of ``BrokerChannels``."""

    def __init__(
        self, world: World, process: Process, host: str, epoch: ControllerEpoch, tell: OnAnswer
    ) -> None:
        self._world = world
        self._process = process
        self._host = host
        self._epoch = epoch
        self._tell = tell
        self._channels: dict[BrokerId, ChannelTask] = {}

    def connect(self, broker: Broker) -> None:
        assert broker.id not in self._channels, broker
        self._channels[broker.id] = ChannelTask(
            self._world, self._process, self._host, broker, self._epoch, self._tell
        )

    def disconnect(self, broker: BrokerId, broker_epoch: BrokerEpoch) -> None:
        channel = self._channels.get(broker)
        if channel is not None and channel.broker.epoch == broker_epoch:
            del self._channels[broker]
            channel.close()

    def send(self, send: Send) -> None:
        channel = self._channels.get(send.broker)
        if channel is not None and channel.broker.epoch == send.broker_epoch:
            channel.send(send)

    def close(self) -> None:
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            channel.close()


class SimulatedController:
    """One process of a controller candidate."""

    def __init__(self, world: World, host: str, number: int) -> None:
        self.host = host
        self.process = Process(world.schedule, f"{host}#{number}")
        self.candidate: Candidate | None = None
        self._world = world

    def launch(self) -> None:
        self.process.soon(self._start)

    def die(self) -> None:
        if self.process.is_alive:
            self.process.kill()
            self._world.network.died(self.process)

    def broker_died(self, broker_id: BrokerId, broker_epoch: BrokerEpoch) -> None:
        self.process.soon(lambda: self._in_candidate().broker_died(broker_id, broker_epoch))

    def command(self, request: Command, answer: AnswerCommand) -> None:
        self.process.soon(lambda: self._in_candidate().command(request, answer))

    def _start(self) -> None:
        world, process = self._world, self.process
        self.candidate = Candidate(
            zookeeper=world.ensemble.client(process, self.host),
            node=ControllerNode(self.host, PORT, 1, self.host, process.wall_ms()),
            config=world.config,
            clock=process,
            timer=ProcessTimer(process),
            submit=process.soon,
            open_channels=self._open_channels,
        )
        draw = dice(world.seed, f"topics {process.name}")
        handlers = ControllerHandlers(
            world.config, self.command, new_topic_id=lambda: uuid.UUID(int=draw.getrandbits(128))
        )
        world.network.listen(self.host, process, handlers.handle)
        self.candidate.start()

    def _open_channels(self, epoch: ControllerEpoch) -> ChannelTasks:
        def tell(answer: PushAnswer) -> None:
            self.process.soon(lambda: self._in_candidate().push_answered(epoch, answer))

        return ChannelTasks(self._world, self.process, self.host, epoch, tell)

    def _in_candidate(self) -> Candidate:
        assert self.candidate is not None, "nobody can ask before it has started"
        return self.candidate
