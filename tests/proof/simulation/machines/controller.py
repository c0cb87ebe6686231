"""A simulated controller candidate: the shipped ``Candidate``, ``Term`` and machine over simulated ports."""

import itertools
import uuid
from collections.abc import Callable
from typing import Final

from simulation.machines.broker import Access, World
from simulation.machines.loops import LoopTasks
from simulation.machines.zookeeper import SimulatedZooKeeper
from simulation.schedule import US_PER_MS, Process, ProcessTimer, Tripwire, dice
from sparklog.controller.broker_channels import BrokerChannels, ChannelPorts
from sparklog.controller.candidate import Candidate
from sparklog.controller.handlers import ControllerHandlers
from sparklog.controller.notification_purge import NotificationPurge
from sparklog.controller.ports import AnswerCommand
from sparklog.controller.reports import report_of
from sparklog.core.controller.actions import PushAnswer, Send
from sparklog.core.controller.commands.controller_command import Command
from sparklog.core.controller.state.znodes import ControllerNode
from sparklog.core.security.rule_nodes import CHANGES
from sparklog.model.cluster_facts import DEFAULT_LISTENER
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, TopicId
from sparklog.model.zookeeper import ZooKeeperError
from sparklog.network.access.access_control import AccessControl, access_control_of
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest, ClusterReportResponse
from sparklog.zookeeper.rule_watch import RuleWatch

PORT: Final = 9091
READ_AGAIN_MS: Final = 300
"""Pause before a start that found no ZooKeeper."""


class _SeenChannels(BrokerChannels):
    """The shipped ones; ``look`` is called with each message before it is put in."""

    look: Callable[[Send], None]

    def send(self, send: Send) -> None:
        self.look(send)
        super().send(send)


class SimulatedController:
    """One process of a controller candidate."""

    def __init__(self, world: World, host: str, number: int) -> None:
        self.host = host
        self.process = Process(world.schedule, f"{host}#{number}")
        self.candidate: Candidate | None = None
        self.on_push: Callable[[ControllerEpoch, Send], None] = lambda epoch, send: None
        """Called with each message to a broker when it is made, and the epoch of its controller."""
        self._world = world
        self._zookeeper: SimulatedZooKeeper | None = None
        self._new_lane = itertools.count().__next__

    @property
    def zookeeper(self) -> SimulatedZooKeeper:
        assert self._zookeeper is not None, "it has not started"
        return self._zookeeper

    def launch(self) -> None:
        self.process.soon(self._start)

    def die(self) -> None:
        if self.process.is_alive:
            self.process.kill()
            self._world.network.died(self.process)

    def broker_died(self, broker_id: BrokerId, broker_epoch: BrokerEpoch) -> None:
        self.process.soon(lambda: self._in_candidate().broker_died(broker_id, broker_epoch))

    def command(self, command: Command, answer: AnswerCommand) -> None:
        self.process.soon(lambda: self._in_candidate().command(command, answer))

    def _start(self) -> None:
        world, process = self._world, self.process
        zookeeper = self._zookeeper = world.ensemble.client(process, self.host)
        self.candidate = Candidate(
            zookeeper=zookeeper,
            node=ControllerNode(self.host, PORT, 1, self.host, process.wall_ms()),
            config=world.config,
            clock=process,
            timer=ProcessTimer(process),
            submit=process.soon,
            open_channels=self._open_channels,
        )
        control = access_control_of(world.config, process, Tripwire())
        if control is None or world.access is None:
            self._listen(None)
        else:
            self._follow_rules(control, world.access)

    def _follow_rules(self, control: AccessControl, access: Access) -> None:
        """As ``ControllerServer.start``, again and again until ZooKeeper answers."""
        process, zookeeper = self.process, self.zookeeper
        watch = RuleWatch(
            zookeeper,
            control.authorizer,
            lambda patterns: process.soon(lambda: self._in_candidate().acls_changed(patterns)),
        )

        def read() -> None:
            try:
                watch.read_all()
            except ZooKeeperError:
                process.schedule.after(READ_AGAIN_MS * US_PER_MS, process, read)
                return
            control.check_own_right(access.principal, "the controller")
            access.stores.enrol(process, control.authorizer)
            loops = LoopTasks(process, self.host, self._world.network)
            loops.start("access-rules", watch.loop)
            purge = NotificationPurge(
                zookeeper, CHANGES.values(), process, lambda: self._in_candidate().is_active
            )
            loops.start("old-notifications", purge.loop)
            self._listen(control)

        read()

    def _listen(self, control: AccessControl | None) -> None:
        world, process = self._world, self.process
        draw = dice(world.seed, f"topics {process.name}")
        handlers = ControllerHandlers(
            world.config,
            self.command,
            self._report,
            new_topic_id=lambda: uuid.UUID(int=draw.getrandbits(128)),
            access_control=control,
            topic_name=self._topic_name,
        )
        world.network.listen(self.host, process, handlers.handle)
        self._in_candidate().start()

    def _topic_name(self, topic_id: TopicId) -> str | None:
        term = self._in_candidate().term
        return None if term is None else term.image.topic_names.get(topic_id)

    def _report(self, request: ClusterReportRequest) -> ClusterReportResponse:
        candidate = self._in_candidate()
        return report_of(candidate.view, candidate.node, request)

    def _open_channels(self, epoch: ControllerEpoch) -> BrokerChannels:
        def on_answer(answer: PushAnswer) -> None:
            self.process.soon(lambda: self._in_candidate().push_answered(epoch, answer))

        loops = LoopTasks(self.process, self.host, self._world.network)
        ports = ChannelPorts(loops, self._new_lane, loops.hang_up, loops.has_ended, Tripwire)
        timeout_ms = self._world.config.get_int("request.timeout.ms")
        channels = _SeenChannels(
            epoch, on_answer, ports, listener=DEFAULT_LISTENER, request_timeout_ms=timeout_ms
        )
        channels.look = lambda send: self.on_push(epoch, send)
        return channels

    def _in_candidate(self) -> Candidate:
        assert self.candidate is not None, "nobody can ask before it has started"
        return self.candidate
