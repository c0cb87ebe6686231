"""Three machines with brokers, two controller candidates, ZooKeeper and a network; what faults do to them."""

import errno
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from sparklog.core.controller.znodes import decode_incarnation, incarnation_path
from sparklog.model.config import BrokerConfig
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.testing.memory_zookeeper import ZooKeeperTree
from sparklog.testing.simulation.administrator import Administrator
from sparklog.testing.simulation.broker import (
    RELAUNCH_MS,
    STOPPED_CLEANLY,
    Machine,
    SimulatedBroker,
    World,
)
from sparklog.testing.simulation.controller import SimulatedController
from sparklog.testing.simulation.disk import Step, Trouble
from sparklog.testing.simulation.faults import Fault
from sparklog.testing.simulation.network import Network, Weather
from sparklog.testing.simulation.operations import Operation
from sparklog.testing.simulation.plan import CONTROLLERS, MAIN_TOPIC, SIDE_TOPIC, Plan
from sparklog.testing.simulation.schedule import US_PER_MS, Process, ProcessDied, Schedule, dice
from sparklog.testing.simulation.story import Story
from sparklog.testing.simulation.tasks import Stage
from sparklog.testing.simulation.witness import Witness
from sparklog.testing.simulation.zookeeper import Ensemble

DOOMED_MS_MAX: Final = 3_000
"""How long after a broker's start a page may still be read that an fsync should have saved."""

REPORT_MS: Final = 2
"""A supervisor sees a process end after this time."""


@dataclass(slots=True)
class Seat:
    """A place where a program runs: which process is there now, and how many faults keep it down."""

    host: str
    down: int = 0
    launches: int = 0


class Cluster:
    """The world of one run."""

    def __init__(self, plan: Plan, *, is_told: bool = False) -> None:
        self.plan = plan
        self.schedule = Schedule()
        self.story = Story(self.schedule, is_told)
        network = Network(self.schedule, plan.seed, plan.delay_ms)
        ensemble = Ensemble(self.schedule, plan.seed, plan.delay_ms, plan.session_timeout_ms, ZooKeeperTree())
        config = BrokerConfig.parse(plan.settings)
        self.world = World(self.schedule, network, ensemble, config, plan.seed)
        self.machines = {host: Machine(BrokerId(number)) for number, host in enumerate(plan.brokers, 1)}
        self.seats = {host: Seat(host) for host in (*plan.brokers, *CONTROLLERS)}
        self.brokers: dict[str, SimulatedBroker] = {}
        self.controllers: dict[str, SimulatedController] = {}
        self.witness = Witness(
            self.story,
            ensemble.tree,
            config,
            (MAIN_TOPIC, SIDE_TOPIC),
            clocks_jump=any(fault.kind == "jump clock" for fault in plan.faults),
        )
        self.administrator = Administrator(
            self.schedule,
            network,
            self.witness,
            self.story,
            main=MAIN_TOPIC,
            side=SIDE_TOPIC,
            brokers=plan.brokers,
            controllers=CONTROLLERS,
        )
        ensemble.on_change = self.witness.look_at_zookeeper
        self.schedule.on_step = self._look
        self.struck: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.is_calm = False
        """Whether no further fault strikes."""
        self._by_process: dict[Process, SimulatedBroker] = {}

    def start(self) -> None:
        self.world.ensemble.start()
        for host in self.seats:
            self.launch(host)

    def _look(self, process: Process | None) -> None:
        broker = self._by_process.get(process) if process is not None else None
        if broker is not None and broker.replicas is not None and broker.process.is_alive:
            self.witness.look_at(broker.machine.broker_id, broker.replicas)

    # ---- processes -----------------------------------------------------------------------------------------

    def launch(self, host: str) -> None:
        """Start the program of a seat, unless it runs or a fault keeps it down."""
        seat = self.seats[host]
        if seat.down or self.is_up(host):
            return
        seat.launches += 1
        self.story.tell(host, "is launched")
        if host in self.machines:
            self._settle_doomed(host, seat.launches)
            broker = SimulatedBroker(
                self.world, self.machines[host], seat.launches, self._stopped, self._cleaned
            )
            self.brokers[host] = broker
            self._by_process = {one.process: one for one in self.brokers.values()}
            broker.launch()
        else:
            self.controllers[host] = SimulatedController(self.world, host, seat.launches)
            self.controllers[host].launch()

    def is_up(self, host: str) -> bool:
        process = self.process(host)
        return process is not None and process.is_alive

    def process(self, host: str) -> Process | None:
        holder = self.brokers.get(host) or self.controllers.get(host)
        return None if holder is None else holder.process

    def _stopped(self, broker: SimulatedBroker, why: str) -> None:
        """A broker ended by itself: it could not start, or its session expired."""
        host = broker.machine.host
        self.story.tell(host, f"has stopped: {why}")
        if why == STOPPED_CLEANLY:
            self.witness.marks.reach("a broker stopped cleanly")
        self.schedule.after(RELAUNCH_MS * US_PER_MS, None, lambda: self.launch(host))

    def _cleaned(self, broker: SimulatedBroker, topic_partition: TopicPartition, stage: Stage) -> None:
        assert broker.replicas is not None
        self.witness.cleaned(broker.machine.broker_id, broker.replicas.get(topic_partition))
        if stage != "under way":
            marks = self.witness.marks
            marks.reach("a log was compacted" if stage == "done" else "a cleaning was overtaken by a cut")
            self.story.tell(broker.machine.host, f"compaction of {topic_partition} is {stage}")

    def end(self) -> None:
        """The run is over."""
        for broker in self.brokers.values():
            broker.abandon()

    def kill(self, host: str, *, is_reported: bool) -> None:
        if not self.is_up(host):
            return
        if host in self.controllers:
            self.controllers[host].die()
            return
        broker = self.brokers[host]
        broker.die()
        if is_reported and broker.epoch >= 0:
            for controller in self.controllers.values():
                self.schedule.after(
                    REPORT_MS * US_PER_MS,
                    None,
                    lambda controller=controller: self._report(controller, broker),  # type: ignore[misc]
                )

    def _report(self, controller: SimulatedController, broker: SimulatedBroker) -> None:
        if controller.process.is_alive and controller.candidate is not None:
            controller.report_broker_death(broker.machine.broker_id, broker.epoch)

    # ---- faults --------------------------------------------------------------------------------------------

    def schedule_faults(self) -> None:
        for fault in self.plan.faults:
            self.schedule.at(fault.at_ms * US_PER_MS, None, lambda fault=fault: self.strike(fault))  # type: ignore[misc]

        for operation in self.plan.operations:
            self.schedule.at(operation.at_ms * US_PER_MS, None, partial(self._do, operation))

    def _do(self, operation: Operation) -> None:
        if not self.is_calm:
            self.done[operation.kind] += 1
            self.administrator.do(operation)

    def strike(self, fault: Fault) -> None:
        if self.is_calm:
            return
        self.story.tell("FAULT", str(fault))
        self.struck[fault.kind] += 1
        match fault.kind:
            case "kill broker" | "kill controller":
                self._take_down(fault, is_reported=bool(fault.amount))
            case "kill broker in a write":
                self._kill_in_a_write(fault)
            case "stop broker":
                self._shut_down(fault)
            case "cut the power":
                self._cut_power(fault)
            case "cut all power":
                self._cut_all_power(fault)
            case "fail a write" | "fail an fsync" | "fail a checkpoint":
                self._fail_disk(fault)
            case "fill the disk":
                self._fill_disk(fault)
            case "rot a log" | "rot what derives":
                self._rot(fault)
            case "pause broker" | "pause controller":
                self._pause(fault)
            case "isolate broker" | "cut from controllers" | "cut link" | "cut one way":
                self._spoil_weather(fault)
            case "lose frames" | "lose answers" | "repeat requests" | "delay frames":
                self._spoil_weather(fault)
            case "cut zookeeper" | "expire session" | "lose zookeeper answers" | "delay watches":
                self._trouble_zookeeper(fault)
            case "jump clock":
                self._jump_clock(fault)

    def mend(self) -> None:
        """Nothing goes wrong any more, and every program runs."""
        for machine in self.machines.values():
            machine.disk.trouble = None
            machine.disk.is_full = 0
        for host, seat in self.seats.items():
            seat.down = 0
            self.launch(host)

    def _at_end(self, fault: Fault, action: Callable[[], None]) -> None:
        def end() -> None:
            self.story.tell("fault ends", f"{fault.kind} ({fault.target})")
            action()

        self.schedule.after(fault.duration_ms * US_PER_MS, None, end)

    def _take_down(self, fault: Fault, *, is_reported: bool) -> None:
        seat = self.seats[fault.target]
        seat.down += 1
        self.kill(fault.target, is_reported=is_reported)

        def come_back() -> None:
            seat.down = max(0, seat.down - 1)
            self.launch(fault.target)

        self._at_end(fault, come_back)

    def _shut_down(self, fault: Fault) -> None:
        seat = self.seats[fault.target]
        if not self.is_up(fault.target):
            return
        seat.down += 1
        self.brokers[fault.target].shut_down()

        def come_back() -> None:
            seat.down = max(0, seat.down - 1)
            self.launch(fault.target)

        self._at_end(fault, come_back)

    def _cut_all_power(self, fault: Fault) -> None:
        """Everywhere; each machine is back in its own time. More than replication promises to survive."""
        draw = dice(self.plan.seed, f"blackout {fault.number}")
        for host, machine in self.machines.items():
            self._taint(machine.broker_id)
            duration_ms = int(fault.duration_ms * draw.uniform(0.3, 1))
            self._take_down(replace(fault, target=host, duration_ms=duration_ms), is_reported=False)
            machine.boots += 1
            machine.disk.cut_power(draw)

    def _kill_in_a_write(self, fault: Fault) -> None:
        disk = self.machines[fault.target].disk

        def strike() -> None:
            self.story.tell(fault.target, "dies in the middle of a write")
            self._take_down(fault, is_reported=True)
            raise ProcessDied(fault.target)

        keeps = dice(self.plan.seed, f"torn write {fault.number}").random()
        disk.trouble = Trouble(int(fault.amount), strike, keeps)

    def _cut_power(self, fault: Fault) -> None:
        machine = self.machines[fault.target]
        is_allowed = self._may_lose(machine.broker_id)
        self._take_down(fault, is_reported=False)
        if not is_allowed:
            return
        self.story.tell(fault.target, "loses power: what was not synced may be gone")
        self._taint(machine.broker_id)
        machine.boots += 1
        machine.disk.cut_power(dice(self.plan.seed, f"power cut {fault.number}"))

    def _taint(self, broker_id: BrokerId) -> None:
        """This broker's replicas may have lost records."""
        self.witness.taint(broker_id, self._incarnation(broker_id))

    def _fail_disk(self, fault: Fault) -> None:
        machine = self.machines[fault.target]
        steps: dict[str, Step] = {"fail an fsync": "fsync", "fail a checkpoint": "checkpoint"}

        def strike() -> None:
            if fault.kind != "fail a write" and not self._others_have_all(machine.broker_id):
                return  # a failed sync costs the replica its proof
            self.story.tell(fault.target, "meets an error of its disk")
            raise OSError(errno.EIO, "input/output error")

        keeps = dice(self.plan.seed, f"failed write {fault.number}").random()
        step = steps.get(fault.kind, "write")
        machine.disk.trouble = Trouble(int(fault.amount), strike, keeps, step)

    def _settle_doomed(self, host: str, launches: int) -> None:
        """Before a broker starts: what a failed fsync should have saved is gone, if replication covers it and
        ZooKeeper knows of it. (A process that is killed before it could tell is beyond what is promised.)"""
        machine = self.machines[host]
        if not machine.disk.doomed:
            return
        node = self.world.ensemble.tree.get(incarnation_path(machine.broker_id))
        stat = None if node is None else node.stat
        is_marked = node is not None and stat is not None and bool(
            decode_incarnation(machine.broker_id, node.data, stat.version, stat.mzxid).record.suspect
        )  # fmt: skip
        if not is_marked or not self._others_have_all(machine.broker_id):
            machine.disk.doomed.clear()
            return
        draw = dice(self.plan.seed, f"failed fsync {host} {launches}")
        self._taint(machine.broker_id)
        machine.disk.let_doomed_fade()

        def lose() -> None:
            self.story.tell(host, "has lost what an fsync should have saved")
            machine.disk.lose_fading(draw)

        if draw.random() < 0.5:
            lose()
        else:  # its memory is not short yet
            self.schedule.after(int(draw.uniform(50, DOOMED_MS_MAX) * US_PER_MS), None, lose)

    def _fill_disk(self, fault: Fault) -> None:
        disk = self.machines[fault.target].disk
        disk.is_full += 1

        def make_room() -> None:
            disk.is_full = max(0, disk.is_full - 1)

        self._at_end(fault, make_room)

    def _rot(self, fault: Fault) -> None:
        """A log rots while its broker is down, or it would be found only by whoever reads it."""
        machine, logs = self.machines[fault.target], fault.kind == "rot a log"
        if logs:
            self._take_down(fault, is_reported=True)
            if not self._may_lose(machine.broker_id):
                return
            self._taint(machine.broker_id)
        where = machine.disk.rot(dice(self.plan.seed, f"rot {fault.number}"), logs=logs)
        self.story.tell(fault.target, f"rots: {where}")

    def _others_have_all(self, broker_id: BrokerId) -> bool:
        """Whether each ISR has another member, no replica elsewhere is damaged, and nobody moves any."""
        if self._is_delicate(broker_id):
            return False
        for truth in self.witness.truths.values():
            isr = truth.state.isr if truth.state is not None else ()
            if truth.tainted or all(member == broker_id for member in isr):
                return False
        return bool(self.witness.truths)

    def _is_delicate(self, broker_id: BrokerId) -> bool:
        """Whether replicas are about to be moved, or another machine has pages that will be lost."""
        return bool(self.administrator.moves_pending) or any(
            machine.disk.doomed or machine.disk.fading
            for machine in self.machines.values()
            if machine.broker_id != broker_id
        )

    def _incarnation(self, broker_id: BrokerId) -> int:
        stat = self.world.ensemble.tree.exists(f"/brokers/incarnations/{broker_id}")
        return -1 if stat is None else stat.version

    def _may_lose(self, broker_id: BrokerId) -> bool:
        """The fault atlas: what replication with min.insync.replicas=2 promises to survive."""
        if not self.plan.may_lose_one or not self.witness.truths or self._is_delicate(broker_id):
            return False
        for truth in self.witness.truths.values():
            isr = truth.state.isr if truth.state is not None else ()
            if truth.tainted or len(isr) < 2:
                return False
        return True

    def _pause(self, fault: Fault) -> None:
        process = self.process(fault.target)
        if process is not None:
            process.pause()
            self._at_end(fault, process.resume)

    def _spoil_weather(self, fault: Fault) -> None:
        network = self.world.network
        if fault.kind in ("isolate broker", "cut from controllers"):
            around = CONTROLLERS if fault.kind == "cut from controllers" else tuple(self.seats)
            hosts = [host for host in around if host != fault.target]
            links = [pair for host in hosts for pair in ((host, fault.target), (fault.target, host))]
        else:
            links = [(fault.target, fault.other)]
            if fault.kind not in ("cut one way", "lose answers"):
                links.append((fault.other, fault.target))
        spoilt = [network.weather(origin, destination) for origin, destination in links]

        def spoil(sign: int) -> None:
            for weather in spoilt:
                _spoil(weather, fault, sign)

        spoil(1)
        self._at_end(fault, lambda: spoil(-1))

    def _trouble_zookeeper(self, fault: Fault) -> None:
        ensemble, host = self.world.ensemble, fault.target
        match fault.kind:
            case "cut zookeeper":
                ensemble.cut(host)
                self._at_end(fault, lambda: ensemble.reconnect(host))
            case "expire session":
                ensemble.expire(host)
            case "lose zookeeper answers":
                ensemble.unknown[host] += fault.amount
                self._at_end(fault, lambda: ensemble.believe(host, fault.amount))
            case _:
                ensemble.late_watches_ms += fault.amount
                self._at_end(fault, lambda: ensemble.hurry_watches(fault.amount))

    def _jump_clock(self, fault: Fault) -> None:
        process = self.process(fault.target)
        if process is not None:
            process.skew_ms += int(fault.amount)


def _spoil(weather: Weather, fault: Fault, sign: int) -> None:
    match fault.kind:
        case "lose frames":
            weather.loss += sign * fault.amount
        case "lose answers":
            weather.answer_loss = max(0.0, weather.answer_loss + sign * fault.amount)
        case "repeat requests":
            weather.repeat = max(0.0, weather.repeat + sign * fault.amount)
        case "delay frames":
            weather.extra_ms += sign * fault.amount
        case _:
            weather.is_cut += sign
