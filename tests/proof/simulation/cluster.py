"""Machines with brokers, two controller candidates, ZooKeeper and a network: what there is in a run."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from simulation.clients.administrator import Administrator
from simulation.invariants.access.access_rules import AccessRules
from simulation.invariants.coordinators import CoordinatorsAreAReplay
from simulation.invariants.leadership import LeadershipIsAnnounced
from simulation.invariants.operations.throttle_rules import ThrottleRules
from simulation.invariants.tiers import TierRules
from simulation.invariants.waits import LOOK_MS, CommitsWhatTheIsrHas
from simulation.machines.broker import (
    RELAUNCH_MS,
    STOPPED_CLEANLY,
    Access,
    Machine,
    SimulatedBroker,
    World,
)
from simulation.machines.controller import SimulatedController
from simulation.machines.network import Network
from simulation.machines.object_store import ObjectStore
from simulation.machines.producer_id_blocks import ProducerIdsAreUnique
from simulation.machines.tasks import Stage
from simulation.machines.zookeeper import Ensemble
from simulation.plans.operations import Operation
from simulation.plans.plan import CONTROLLERS, MAIN_TOPIC, SIDE_TOPIC, Plan
from simulation.plans.principals import BROKER, TEAM_TOPICS, principal_of
from simulation.plans.transactions import has_pipelines
from simulation.plans.typed import TYPED_TOPIC
from simulation.plans.writes import member_silence_ms
from simulation.schedule import US_PER_MS, Process, Schedule
from simulation.story import Story
from simulation.witness import Witness
from sparklog.core.controller.state.wishes import Wish
from sparklog.model.ids import BrokerId, TopicId, TopicPartition
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import Operation as Write
from sparklog.testing.memory_zookeeper import ZooKeeperTree

REPORT_MS: Final = 2
"""A supervisor sees a process end after this time."""


@dataclass(slots=True)
class Seat:
    """A place where a program runs: which process is there now, and how many faults keep it down."""

    host: str
    down: int = 0
    launches: int = 0


def _drift_max(plan: Plan) -> float:
    """By how much of every second two machines' clocks may part."""
    rates = [0.0, *(fault.amount for fault in plan.faults if fault.kind == "drift clock")]
    return max(rates) - min(rates)


class Cluster:
    """The world of one run."""

    def __init__(self, plan: Plan, *, is_told: bool = False) -> None:
        self.plan = plan
        self.schedule = Schedule()
        self.story = Story(self.schedule, is_told)
        network = Network(self.schedule, plan.seed, plan.delay_ms)
        ensemble = Ensemble(self.schedule, plan.seed, plan.delay_ms, plan.session_timeout_ms, ZooKeeperTree())
        config = BrokerConfig.parse(plan.settings)
        store, tiers = None, None
        if plan.tier is not None:
            store = ObjectStore(self.schedule, plan.tier.delay_ms)
            tiers = TierRules(store.objects, plan.tier.grace_ms, lambda: self.schedule.now_ms)
        self.access: AccessRules | None = None
        """None without principals."""
        if plan.principals is not None:
            network.principal_of = principal_of
            self.access = AccessRules(
                plan.principals,
                ensemble.tree,
                lambda: self.schedule.now_us,
                self._topic_name,
                self._reach,
            )
        identities = ProducerIdsAreUnique(tell=self.story.tell)
        leadership = LeadershipIsAnnounced()
        self.world = World(
            self.schedule,
            network,
            ensemble,
            config,
            plan.seed,
            identities,
            leadership,
            plan.directories,
            plan.load_turn_us,
            store,
            None if self.access is None else Access(BROKER, self.access.stores),
        )
        self.machines = {host: Machine(BrokerId(number)) for number, host in enumerate(plan.brokers, 1)}
        self.seats = {host: Seat(host) for host in (*plan.brokers, *CONTROLLERS)}
        self.brokers: dict[str, SimulatedBroker] = {}
        self.controllers: dict[str, SimulatedController] = {}
        self.witness = Witness(
            self.story,
            ensemble.tree,
            config,
            (
                MAIN_TOPIC,
                SIDE_TOPIC,
                *([TYPED_TOPIC] if plan.typed is not None else []),
                *(TEAM_TOPICS if plan.principals is not None else []),
                *([GROUP_OFFSETS_TOPIC] if plan.groups or has_pipelines(plan.transactions) else []),
                *([TRANSACTION_STATE_TOPIC] if plan.has_transaction_states else []),
            ),
            identities,
            leadership,
            clocks_jump=any(fault.kind == "jump clock" for fault in plan.faults),
            drift_max=_drift_max(plan),
            tiers=tiers,
        )
        seen = self.witness
        self.throttles = ThrottleRules(seen.tree, seen.truths, seen.operations, seen.marks)
        if store is not None and tiers is not None:
            store.tell = self.story.tell
            store.on_put, store.on_delete = tiers.on_put, tiers.on_delete
            tiers.reach = self.witness.marks.reach
        self.witness.excuses.rots = self._rots
        self.witness.writes.silence_ms = member_silence_ms(plan.seed)
        self.administrator = Administrator(
            self.schedule,
            network,
            self.witness,
            self.story,
            main=MAIN_TOPIC,
            side=SIDE_TOPIC,
            brokers=plan.brokers,
            controllers=CONTROLLERS,
            machines=self.machines,
        )
        self.administrator.side_configs = plan.side_configs
        ensemble.on_change = self.witness.look_at_zookeeper
        ensemble.on_write = self.witness.look_at_write
        if self.access is not None:
            self._look_at_access(self.access)
        self.schedule.on_step = self._look
        self.schedule.on_standstill = self._look_beside
        self.done: Counter[str] = Counter()
        self.is_calm = False
        """Whether no further fault strikes."""
        self.before_launch: Callable[[str, int], None] = lambda host, launches: None
        """Called with a broker's host, and how often it was launched there, before it starts."""
        self._commits = CommitsWhatTheIsrHas()
        self._coordinators: CoordinatorsAreAReplay | None = None
        if plan.groups or plan.has_transaction_states:
            self._coordinators = CoordinatorsAreAReplay(self.witness.marks)
        rot = ("rot what derives", "rot a log")
        self.witness.remembers.checkpoints_rot = any(fault.kind in rot for fault in plan.faults)
        slow_news = ("delay watches", "lag zookeeper")
        self.witness.presence.brokers = tuple(machine.broker_id for machine in self.machines.values())
        self.witness.presence.is_blind = any(fault.kind in slow_news for fault in plan.faults)
        self._by_process: dict[Process, SimulatedBroker] = {}
        self._by_controller: dict[Process, SimulatedController] = {}

    def _look_at_access(self, access: AccessRules) -> None:
        ensemble, witness = self.world.ensemble, self.witness

        def look_at_zookeeper() -> None:
            witness.look_at_zookeeper()
            access.history.look_at_zookeeper()

        def look_at_write(operations: Sequence[Write]) -> None:
            witness.look_at_write(operations)
            access.history.look_at_write(operations)

        ensemble.on_change, ensemble.on_write = look_at_zookeeper, look_at_write
        self.world.network.on_answer = access.on_answer
        access.names.has_lost = lambda: witness.transactions.has_lost_states
        witness.add_rule(access.rights)
        witness.add_rule(access.names)
        access.serving = lambda: [one.process for one in self._served().values()]

    def _reach(self, mark: str) -> None:
        self.witness.marks.reach(mark)

    def _topic_name(self, topic_id: TopicId) -> str | None:
        seen = self.witness.seen_topics
        return next((name for name, one in seen.items() if one.node.id == topic_id), None)

    def _served(self) -> dict[str, SimulatedBroker | SimulatedController]:
        return {**self.brokers, **self.controllers}

    def be_silent(self) -> None:
        """Leave it to clients to notice what is wrong."""
        self.witness.be_silent()
        if self.access is not None:
            self.access.be_silent()

    def start(self) -> None:
        self.world.ensemble.start()
        for host in self.seats:
            self.launch(host)
        self._look_at_waits()

    def _look_at_waits(self) -> None:
        if self.witness.is_silent:
            return
        for broker in self.brokers.values():
            process = broker.process
            replicas = broker.replicas if process.is_running and not process.is_waiting else None
            self._commits.look_at(
                broker.machine.broker_id, replicas, self.witness.truths, process.monotonic_ms()
            )
        if self.access is not None:
            for one in self._served().values():
                hears = self.world.ensemble.hears_in_time(one.process)
                self.access.stores.look_whether_late(one.process, is_undisturbed=hears)
        self.schedule.after(LOOK_MS * US_PER_MS, None, self._look_at_waits)

    def _look(self, process: Process | None) -> None:
        if self.access is not None and process is not None:
            self.access.stores.look_at(process)
        broker = self._by_process.get(process) if process is not None else None
        if broker is not None and broker.body is not None and broker.process.is_alive:
            body = broker.body
            broker.machine.disk.is_looked_at = True
            self.witness.look_at(
                broker.machine.broker_id, body.replicas, body.context.log_dirs, body.context.metadata
            )
            judge = None if self.witness.is_silent else self._coordinators
            if judge is not None:
                judge.look_at(body.replicas, body.coordinators.hosts())
            broker.machine.disk.is_looked_at = False
        controller = self._by_controller.get(process) if broker is None and process is not None else None
        if controller is not None and process is not None and not process.is_waiting:
            self.witness.look_at_controller(controller)

    def _look_beside(self, process: Process) -> None:
        """At the replicas of a broker that stands still in the middle of a change of another one of them."""
        broker = self._by_process.get(process)
        if broker is not None and broker.replicas is not None:
            broker.machine.disk.is_looked_at = True
            self.witness.look_beside(broker.machine.broker_id, broker.replicas)
            broker.machine.disk.is_looked_at = False

    # ---- processes -----------------------------------------------------------------------------------------

    def launch(self, host: str) -> None:
        """Start the program of a seat, unless it runs or a fault keeps it down."""
        seat = self.seats[host]
        if seat.down or self.is_up(host) or not self._is_wished(host):
            return
        seat.launches += 1
        self.story.tell(host, "is launched")
        if host in self.machines:
            self.before_launch(host, seat.launches)
            broker = SimulatedBroker(
                self.world, self.machines[host], seat.launches, self._stopped, self._cleaned
            )
            self.brokers[host] = broker
            self._by_process = {one.process: one for one in self.brokers.values()}
            broker.launch()
        else:
            self.controllers[host] = SimulatedController(self.world, host, seat.launches)
            self._by_controller = {one.process: one for one in self.controllers.values()}
            self.controllers[host].on_push = self.throttles.look_at_push
            self.controllers[host].launch()

    def _is_wished(self, host: str) -> bool:
        machine = self.machines.get(host)
        return machine is None or self.witness.operations.wish(machine.broker_id) is Wish.serving

    def stop(self, machine: Machine) -> None:
        """Have its broker stop in order, if it runs."""
        if self.is_up(machine.host):
            self.brokers[machine.host].shut_down()

    def is_up(self, host: str) -> bool:
        process = self.process(host)
        return process is not None and process.is_alive

    def process(self, host: str) -> Process | None:
        holder = self.brokers.get(host) or self.controllers.get(host)
        return None if holder is None else holder.process

    def leads_in(self, address: str, topic_partition: TopicPartition) -> int:
        """The epoch in which the broker that is at ``address`` now leads; -1 if it does not, or none is."""
        for broker in self.brokers.values():
            if broker.machine.address == address and broker.process.is_alive and broker.replicas is not None:
                partition = broker.replicas.get(topic_partition)
                leader = None if partition is None else partition._replica.leader
                return -1 if leader is None else leader.leader_epoch
        return -1

    def _rots(self, broker_id: BrokerId, topic_partition: TopicPartition) -> bool:
        machines = (one for one in self.machines.values() if one.broker_id == broker_id)
        return any(machine.disk.rots(str(topic_partition)) for machine in machines)

    def _stopped(self, broker: SimulatedBroker, why: str) -> None:
        """A broker ended by itself: it could not start, or its session expired."""
        host = broker.machine.host
        self.story.tell(host, f"has stopped: {why}")
        if why == STOPPED_CLEANLY:
            self.witness.marks.reach("a broker stopped cleanly")
            if broker.released_by >= 0 and self.brokers.get(host) is broker:  # none that was replaced
                self.witness.stopped_cleanly(broker.machine.broker_id, broker.released_by)
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
            controller.broker_died(broker.machine.broker_id, broker.epoch)

    # ---- work ----------------------------------------------------------------------------------------------

    def schedule_operations(self) -> None:
        for operation in self.plan.operations:
            self.schedule.at(operation.at_ms * US_PER_MS, None, partial(self._do, operation))

    def _do(self, operation: Operation) -> None:
        if not self.is_calm:
            self.done[operation.kind] += 1
            self.administrator.do(operation)
