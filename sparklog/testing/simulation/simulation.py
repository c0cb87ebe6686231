"""One run: a cluster comes up, is troubled for a while, is healed, and must then come to rest.

    0 ms                 brokers and controllers start; a topic is created; clients begin
    FAULTS_BEGIN_MS      the plan's faults strike, each for its time
    faults_end_ms        whatever is still wrong is mended, and every process that is down comes back
    then                 within ``PATIENCE_MS`` every partition must have a leader, a full ISR, and equal
                         logs that are committed to the end, and every send a definite answer

Every event is followed by a look at what it changed; a broken invariant ends the run at once. The last phase
is the liveness half: safety alone would be satisfied by a cluster that does nothing.
"""

import logging
import uuid
from dataclasses import dataclass, field
from typing import Final

from sparklog.core.controller.commands import CreateTopics, NewTopic, Result, TopicsResult
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.testing.simulation.clients import Consumer, Producer, Workplace
from sparklog.testing.simulation.cluster import Cluster
from sparklog.testing.simulation.invariants import Violation
from sparklog.testing.simulation.mutants import Mutant, applied
from sparklog.testing.simulation.plan import BROKERS, FAULTS_BEGIN_MS, Plan
from sparklog.testing.simulation.schedule import US_PER_MS, dice
from sparklog.testing.simulation.truth import PartitionTruth

TOPIC: Final = "quakes"
PATIENCE_MS: Final = 60_000
"""Simulated time within which a healed cluster must have come to rest."""

LOOK_MS: Final = 100
QUIET_MS: Final = 1_000
"""How long after the faults producers go on, so that the healed cluster has something to do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run. ``violation`` is None if nothing was violated."""

    plan: Plan
    violation: Violation | None
    simulated_ms: int
    steps: int
    acknowledged: int
    faults: int
    lines: tuple[str, ...] = field(default=(), repr=False)
    digest: str = ""


def simulate(plan: Plan, *, mutant: Mutant | None = None, is_told: bool = False) -> Outcome:
    """Run a plan to its end, or to the first broken invariant."""
    run = _Run(plan, is_told=is_told)
    violation: Violation | None = None
    with applied(mutant, run.cluster.world.ensemble), _ExceptionsAreViolations():
        try:
            run.go()
        except Violation as broken:
            violation = broken
        except Exception as error:  # noqa: BLE001 (whatever shipped code lets out is a finding)
            violation = Violation("NothingFails", f"{type(error).__name__}: {error}")
            violation.__cause__ = error
    cluster = run.cluster
    if violation is not None:
        cluster.story.tell("VIOLATION", str(violation))
    return Outcome(
        plan,
        violation,
        cluster.schedule.now_ms,
        cluster.schedule.steps,
        sum(producer.acknowledged for producer in run.producers),
        sum(cluster.struck.values()),
        tuple(cluster.story.lines),
        cluster.story.digest if is_told else "",
    )


class _Run:
    def __init__(self, plan: Plan, *, is_told: bool) -> None:
        self.plan = plan
        self.cluster = Cluster(plan, is_told=is_told)
        self.producers: list[Producer] = []
        self.consumers: list[Consumer] = []
        self._created: list[TopicsResult] = []

    def go(self) -> None:
        self.cluster.start()
        self._create_topic()
        self._start_clients()
        self.cluster.schedule_faults()
        self._run_faults()
        self._heal()
        self._converge()

    def _run_until(self, ms: int) -> None:
        self.cluster.schedule.run_until(ms * US_PER_MS)

    # ---- coming up -----------------------------------------------------------------------------------------

    def _create_topic(self) -> None:
        schedule = self.cluster.schedule
        while not all(broker.is_registered for broker in self.cluster.brokers.values()):
            self._run_until(schedule.now_ms + 10)
        topic_id = uuid.UUID(int=dice(self.plan.seed, "topic").getrandbits(128))
        for number in range(self.plan.partitions):
            self.cluster.witness.expect(TopicPartition(TOPIC, number))
        topic = NewTopic(TOPIC, topic_id, partitions=self.plan.partitions, replication_factor=3)
        while not self._created:
            for controller in self.cluster.controllers.values():
                controller.command(CreateTopics((topic,), timeout_ms=1_000), self._on_created)
            self._run_until(schedule.now_ms + 200)

    def _on_created(self, result: Result) -> None:
        assert isinstance(result, TopicsResult)
        if result.topics[0].error in (ErrorCode.none, ErrorCode.topic_already_exists):
            self._created.append(result)

    def _start_clients(self) -> None:
        cluster = self.cluster
        place = Workplace(
            cluster.schedule,
            cluster.world.network,
            cluster.witness,
            cluster.story,
            BROKERS,
            self._created[0].topics[0].id,
            self.plan.seed,
        )
        for number, planned in enumerate(self.plan.producers, 1):
            producer = Producer(
                place,
                number,
                TopicPartition(TOPIC, planned.partition),
                acks=planned.acks,
                in_flight_max=planned.in_flight_max,
                interval_ms=planned.interval_ms,
                records_max=planned.records_max,
            )
            self.producers.append(producer)
            producer.start()
        for number in range(self.plan.partitions):
            consumer = Consumer(place, number, TopicPartition(TOPIC, number))
            self.consumers.append(consumer)
            consumer.start()

    # ---- trouble and peace ---------------------------------------------------------------------------------

    def _run_faults(self) -> None:
        schedule, last = self.cluster.schedule, self.plan.steps_max
        end_ms = max(self.plan.faults_end_ms, FAULTS_BEGIN_MS)
        while schedule.now_ms < end_ms and (last is None or schedule.steps < last):
            self._run_until(min(end_ms, schedule.now_ms + LOOK_MS))

    def _heal(self) -> None:
        """The longest fault ends by itself soon; from then on nothing new goes wrong."""
        schedule = self.cluster.schedule
        self.cluster.is_calm = True
        begun = [fault for fault in self.plan.faults if fault.at_ms <= schedule.now_ms]
        ends = [fault.at_ms + fault.duration_ms for fault in begun]
        self._run_until(max([schedule.now_ms, *ends]) + 1)
        self.cluster.mend()
        self.cluster.story.tell("HEALED", "nothing goes wrong any more")
        self._run_until(schedule.now_ms + QUIET_MS)
        for producer in self.producers:
            producer.is_stopping = True
        for consumer in self.consumers:
            consumer.start_again()

    def _converge(self) -> None:
        schedule = self.cluster.schedule
        deadline_ms = schedule.now_ms + PATIENCE_MS
        while (trouble := self._unrest()) is not None:
            if schedule.now_ms > deadline_ms:
                raise Violation("ComesToRest", f"{PATIENCE_MS} ms after healing: {trouble}")
            self._run_until(schedule.now_ms + LOOK_MS)
        self.cluster.story.tell("AT REST", "all logs are equal and committed, every send is answered")

    def _unrest(self) -> str | None:
        """What is still missing to rest."""
        for host, broker in self.cluster.brokers.items():
            if not broker.is_registered:
                return f"{host} is not registered"
        for truth in self.cluster.witness.truths.values():
            trouble = self._partition_unrest(truth)
            if trouble is not None:
                return f"{truth.topic_partition}: {trouble}"
        for producer in self.producers:
            if producer.waiting:
                return f"{producer.name} still waits for {len(producer.waiting)} answers"
        for consumer in self.consumers:
            end = self.cluster.witness.truths[consumer.topic_partition].committed_end
            if consumer.offset < end:
                return f"{consumer.name} has read up to {consumer.offset} of {end}"
        return None

    def _partition_unrest(self, truth: PartitionTruth) -> str | None:
        state = truth.state
        if state is None or not state.has_leader:
            return f"there is no leader in {state}"
        if len(state.isr) < len(BROKERS):
            return f"the ISR is {list(state.isr)}"
        for host, machine in self.cluster.machines.items():
            replicas = self.cluster.brokers[host].replicas
            partition = None if replicas is None else replicas.get(truth.topic_partition)
            if partition is None:
                return f"{host} has no replica"
            if partition.is_leader != (state.leader == machine.broker_id):
                return f"{host} has another idea of who leads than ZooKeeper, which names {state.leader}"
            if not partition.high_watermark == partition.log_end_offset == truth.committed_end:
                return (
                    f"{host} has high watermark {partition.high_watermark} and end "
                    f"{partition.log_end_offset}; committed is {truth.committed_end}"
                )
            if truth.view(BrokerId(machine.broker_id)).entries != truth.committed:
                return f"{host} has another log than the committed one"
        return None


class _ExceptionsAreViolations(logging.Handler):
    """Shipped code logs what it survives; here a failure of ours must not be survived unseen."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)

    def __enter__(self) -> None:
        self._logger = logging.getLogger("sparklog")
        self._before = (self._logger.propagate, self._logger.level, logging.root.manager.disable)
        self._logger.propagate = False
        self._logger.setLevel(logging.ERROR)
        logging.disable(logging.NOTSET)
        self._logger.addHandler(self)

    def __exit__(self, *unused: object) -> None:
        self._logger.removeHandler(self)
        self._logger.propagate, level, disabled = self._before
        self._logger.setLevel(level)
        logging.disable(disabled)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, Exception) and not isinstance(error, OSError):
            raise Violation("NothingFails", f"{record.getMessage()}: {error!r}") from error
        if "may be lost" in record.getMessage():
            raise Violation("NoElectionLoses", record.getMessage())
