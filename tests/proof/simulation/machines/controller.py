"""A simulated controller candidate: the shipped ``Candidate``, ``Term`` and machine over simulated ports."""

import itertools
import uuid
from typing import Final

from simulation.machines.broker import World
from simulation.machines.loops import LoopTasks
from simulation.schedule import Process, ProcessTimer, Tripwire, dice
from sparklog.controller.broker_channels import BrokerChannels, ChannelPorts
from sparklog.controller.candidate import Candidate
from sparklog.controller.handlers import ControllerHandlers
from sparklog.controller.ports import AnswerCommand
from sparklog.controller.reports import report_of
from sparklog.core.controller.actions import PushAnswer
from sparklog.core.controller.commands.controller_command import Command
from sparklog.core.controller.state.znodes import ControllerNode
from sparklog.model.cluster_facts import DEFAULT_LISTENER
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest, ClusterReportResponse

PORT: Final = 9091


class SimulatedController:
    """One process of a controller candidate."""

    def __init__(self, world: World, host: str, number: int) -> None:
        self.host = host
        self.process = Process(world.schedule, f"{host}#{number}")
        self.candidate: Candidate | None = None
        self._world = world
        self._new_lane = itertools.count().__next__

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
            world.config,
            self.command,
            self._report,
            new_topic_id=lambda: uuid.UUID(int=draw.getrandbits(128)),
        )
        world.network.listen(self.host, process, handlers.handle)
        self.candidate.start()

    def _report(self, request: ClusterReportRequest) -> ClusterReportResponse:
        candidate = self._in_candidate()
        return report_of(candidate.view, candidate.node, request)

    def _open_channels(self, epoch: ControllerEpoch) -> BrokerChannels:
        def on_answer(answer: PushAnswer) -> None:
            self.process.soon(lambda: self._in_candidate().push_answered(epoch, answer))

        loops = LoopTasks(self.process, self.host, self._world.network)
        ports = ChannelPorts(loops, self._new_lane, loops.hang_up, loops.has_ended, Tripwire)
        timeout_ms = self._world.config.get_int("request.timeout.ms")
        return BrokerChannels(
            epoch, on_answer, ports, listener=DEFAULT_LISTENER, request_timeout_ms=timeout_ms
        )

    def _in_candidate(self) -> Candidate:
        assert self.candidate is not None, "nobody can ask before it has started"
        return self.candidate
