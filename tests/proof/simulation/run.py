"""One run: a cluster comes up, is troubled for a while, is healed, and must then come to rest.

    0 ms                 brokers and controllers start; a topic is created; clients begin
    FAULTS_BEGIN_MS      the plan's faults strike, each for its time
    faults_end_ms        whatever is still wrong is mended, and every process that is down comes back
    then                 within ``PATIENCE_MS`` every partition must have a leader, a full ISR, and equal
                         logs that are committed to the end, and every send a definite answer

Every event is followed by a look at what it changed; a broken invariant ends the run at once. The last phase
is the liveness half: safety alone would be satisfied by a cluster that does nothing.
"""

import gc
import logging
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from simulation.black_box import judge
from simulation.clients.client import Workplace
from simulation.clients.consumers import Consumer, consumer_unrest
from simulation.clients.end_askers import EndAsker
from simulation.clients.groups.crowd import Crowd, crowds_of
from simulation.clients.idempotent_producers import Producer
from simulation.clients.plain_producers import PlainProducer
from simulation.clients.rereaders import Rereader
from simulation.clients.teams.team_crowd import TeamCrowd, teams_of
from simulation.clients.transactions.crew import Crew, crews_of
from simulation.clients.transactions.reader import CommittedReader
from simulation.clients.typed.typed_crowd import TypedCrowd
from simulation.clients.writes.batch_reads import BatchReads
from simulation.clients.writes.job import Job, jobs_of
from simulation.cluster import Cluster
from simulation.dumps import dump_replicas
from simulation.invariants.atomic_writes.cuts import CutRules
from simulation.invariants.invariant import Violation
from simulation.machines.broker import Machine
from simulation.machines.member_ids import drawn_member_ids
from simulation.machines.notification_spans import short_notification_spans
from simulation.machines.producer_id_blocks import small_blocks
from simulation.machines.tiering import small_tiers
from simulation.machines.write_spans import short_write_spans
from simulation.mutants import Mutant, applied
from simulation.operators.broker_operators import Operators
from simulation.operators.last_resort import Operator
from simulation.plans.operations import TOPIC_KINDS
from simulation.plans.plan import CONTROLLERS, FAULTS_BEGIN_MS, MAIN_TOPIC, SIDE_TOPIC, Plan, ProducerPlan
from simulation.plans.principals import TEAM_TOPICS
from simulation.plans.typed import DDL, TYPED_TOPIC
from simulation.schedule import US_PER_MS, Escaped, OutOfSteps, dice
from simulation.strikes.strikes import Strikes
from simulation.truth import PartitionTruth
from sparklog.broker.partition.partition import Partition
from sparklog.core.controller.commands.controller_command import Command, Result
from sparklog.core.controller.commands.topic_commands import CreateTopics, TopicsResult, TopicToCreate
from sparklog.core.controller.state.znodes import DELETE_TOPICS
from sparklog.core.security.requester import ANONYMOUS, Requester
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.schema.schema_settings import schema_settings

PATIENCE_MS: Final = 60_000
"""Simulated time within which a healed cluster must have come to rest."""

CLIENTS_PATIENCE_MS: Final = 10_000
"""As much, where only clients are looked at, and for what they send to a cluster at rest."""

STACK_FRAMES: Final = 10_000
"""A process that waits is on the stack of whatever goes on meanwhile, and many may wait at once."""

LOOK_MS: Final = 100
QUIET_MS: Final = 1_000
"""How long after the faults producers go on, so that the healed cluster has something to do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run. ``violation`` is None if nothing was violated, as far as it went."""

    plan: Plan
    violation: Violation | None
    simulated_ms: int
    steps: int
    acknowledged: int
    faults: int
    """That struck somebody."""
    spared: int
    """How many of these did less than they are called, see ``Atlas.spared``."""
    operations: int
    """That were asked for."""
    accepted: int
    """Requests for them, and their parts, that somebody did, or began."""
    marks: Mapping[str, int]
    is_complete: bool
    """Whether it came to its end, and was not cut short by ``Plan.steps_max``."""
    lines: tuple[str, ...] = field(default=(), repr=False)
    digest: str = ""


def simulate(
    plan: Plan, *, mutant: Mutant | None = None, is_told: bool = False, for_clients_only: bool = False
) -> Outcome:
    """Run a plan to its end, or to the first broken invariant. ``for_clients_only``: what clients saw is
    all that says whether anything is wrong.
    """
    with _garbage_waits(), _deep_stack():
        return _simulate(plan, mutant, is_told, for_clients_only)


@contextmanager
def _garbage_waits() -> Iterator[None]:
    """A run is short and full of cycles: one collection at its end, of what is new, saves a fifth."""
    was_enabled = gc.isenabled()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
        gc.collect()
        gc.unfreeze()


@contextmanager
def _deep_stack() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, STACK_FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _simulate(plan: Plan, mutant: Mutant | None, is_told: bool, for_clients_only: bool) -> Outcome:
    run = _Run(plan, is_told=is_told, for_clients_only=for_clients_only)
    violation: Violation | None = None
    is_complete = True
    with (
        small_blocks(plan.seed),
        drawn_member_ids(plan.seed),
        short_write_spans(plan.seed),
        short_notification_spans(plan.principals),
        small_tiers(plan.tier),
        applied(mutant, run.cluster.world.ensemble),
        _ExceptionsAreViolations(is_deaf=for_clients_only),
    ):
        try:
            run.go()
        except Violation as broken:
            violation = broken
        except OutOfSteps:
            is_complete = False
        except Escaped as escaped:
            violation = Violation("NothingFails", str(escaped))
            violation.__cause__ = escaped.__cause__
        except Exception as error:  # noqa: BLE001 (the simulation itself fails)
            violation = Violation("NothingFails", f"{type(error).__name__}: {error}")
            violation.__cause__ = error
    cluster = run.cluster
    run.strikes.end()
    cluster.end()
    if violation is not None:
        cluster.story.tell("VIOLATION", str(violation))
    return Outcome(
        plan,
        violation,
        cluster.schedule.now_ms,
        cluster.schedule.steps,
        sum(producer.acknowledged for producer in run.producers),
        run.strikes.struck.total(),
        run.strikes.atlas.spared.total(),
        cluster.done.total(),
        cluster.administrator.accepted,
        dict(sorted(cluster.witness.marks.counts.items())),
        is_complete,
        tuple(cluster.story.lines),
        cluster.story.digest if is_told else "",
    )


class _Run:
    def __init__(self, plan: Plan, *, is_told: bool, for_clients_only: bool = False) -> None:
        self.plan = plan
        self._for_clients_only = for_clients_only
        self.cluster = Cluster(plan, is_told=is_told)
        self.strikes = Strikes(self.cluster)
        self.operator = Operator(self.cluster)
        self.producers: list[Producer] = []
        self.consumers: list[Consumer] = []
        self._plain: list[PlainProducer] = []
        self._created: list[TopicsResult] = []
        self._is_healed = False
        cluster = self.cluster
        if for_clients_only:
            cluster.be_silent()
        self._place = Workplace(
            cluster.schedule,
            cluster.world.network,
            cluster.witness,
            cluster.story,
            plan.brokers,
            plan.seed,
            cluster.witness.recorder,
            cluster.leads_in,
        )
        read = [TopicPartition(MAIN_TOPIC, number) for number in range(plan.partitions)]
        self._crowds = crowds_of(self._place, plan.groups, read, cluster.witness.groups)
        written = [*read, TopicPartition(SIDE_TOPIC, 0)]
        self._crews = crews_of(self._place, plan.transactions, cluster.witness.transactions, written)
        self._jobs = jobs_of(self._place, plan.writes, cluster.witness.writes, written)
        cuts = CutRules(cluster.witness.writes, cluster.witness.truths)
        reads = [BatchReads(self._place, cuts, written)] if self._jobs else []
        self._teams = teams_of(self._place, plan.principals, cluster.access)
        self._everybody: list[Crowd | Crew | Job | BatchReads | TeamCrowd] = [
            *self._crowds,
            *self._crews,
            *self._jobs,
            *reads,
            *self._teams,
        ]
        self._committed_readers: list[CommittedReader] = []
        self._typed = None if plan.typed is None else TypedCrowd(self._place, plan.typed, CONTROLLERS)
        self._operators = None if plan.wishes is None else Operators(cluster, plan.wishes)

    def go(self) -> None:
        self.cluster.schedule.steps_max = self.plan.steps_max
        self.cluster.start()
        self._create_topic()
        self._start_clients()
        self.strikes.schedule_all()
        self.cluster.schedule_operations()
        self._run_faults()
        self._heal()
        if self._for_clients_only:
            self._wait_for_clients()
        else:
            self._converge()
            self._hear_from_producers()
            if self._typed is not None:
                self._typed.check_at_rest(self._typed_replicas())
            if self.cluster.witness.tiers is not None:
                self.cluster.witness.tiers.check_at_rest(self.cluster.witness.truths.values())
            dump_replicas(
                self.cluster.witness.truths.values(),
                self.cluster.brokers.values(),
                self.cluster.witness.recorder,
            )
        self.cluster.witness.groups.check_what_is_owed()
        if not self._for_clients_only:
            self.cluster.witness.transactions.check_what_is_owed(tuple(self.cluster.witness.truths.values()))
        judge(self.cluster.witness, self.consumers, is_at_rest=not self._for_clients_only)

    def _run_until(self, ms: int) -> None:
        self.cluster.schedule.run_until(ms * US_PER_MS)

    # ---- coming up -----------------------------------------------------------------------------------------

    def _create_topic(self) -> None:
        schedule = self.cluster.schedule
        while not all(broker.is_registered for broker in self.cluster.brokers.values()):
            self._run_until(schedule.now_ms + 10)
        self._create(MAIN_TOPIC, "topic", self.plan.partitions, self.plan.topic_configs)
        if self._typed is not None:
            self._create(TYPED_TOPIC, "typed topic", 1, {**self.plan.typed_configs, **schema_settings(DDL)})
        for topic in TEAM_TOPICS if self._teams else ():
            self._create(topic, topic, 1, {})

    def _create(self, name: str, dice_name: str, partitions: int, configs: Mapping[str, str]) -> None:
        schedule = self.cluster.schedule
        topic_id = uuid.UUID(int=dice(self.plan.seed, dice_name).getrandbits(128))
        topic = TopicToCreate(name, topic_id, partitions=partitions, replication_factor=3, configs=configs)
        self._created.clear()
        while not self._created:
            command = Command(CreateTopics((topic,), timeout_ms=1_000), Requester(ANONYMOUS, "simulation"))
            for controller in self.cluster.controllers.values():
                controller.command(command, self._on_created)
            self._run_until(schedule.now_ms + 200)

    def _on_created(self, result: Result) -> None:
        assert isinstance(result, TopicsResult)
        if result.topics[0].error in (ErrorCode.none, ErrorCode.topic_already_exists):
            self._created.append(result)

    def _start_clients(self) -> None:
        for number, planned in enumerate(self.plan.producers, 1):
            self._start_producer(number, TopicPartition(MAIN_TOPIC, planned.partition), planned)
        for number in range(self.plan.partitions):
            self._start_consumer(TopicPartition(MAIN_TOPIC, number))
        self._start_more_clients()
        if any(one.kind in TOPIC_KINDS for one in self.plan.operations):
            self._start_both(TopicPartition(SIDE_TOPIC, 0))
        for crowd in self._everybody:
            crowd.start()
        self.consumers += [auditor for teams in self._teams for auditor in teams.auditors]
        if self._typed is not None:
            self._typed.start()
            self.cluster.witness.add_rule(self._typed.rules)
            self.producers += self._typed.producers
            self.consumers += self._typed.readers
        if self._operators is not None:
            self._operators.start()
        self.cluster.witness.on_partition = self._on_partition

    def _start_more_clients(self) -> None:
        mix, draw = self.plan.mix, dice(self.plan.seed, "more clients")
        for number, acks in enumerate(mix.plain_acks):
            where = TopicPartition(MAIN_TOPIC, draw.randrange(self.plan.partitions))
            interval_ms = draw.choice((100.0, 300.0))
            name = f"plain-{number}"
            self._plain.append(PlainProducer(self._place, name, where, acks=acks, interval_ms=interval_ms))
            self._plain[-1].start()
        for number in range(self.plan.partitions):
            where = TopicPartition(MAIN_TOPIC, number)
            if mix.has_rereaders:
                name, reads_records = f"rereader-{number}", self._is_compacted(where)
                Rereader(
                    self._place,
                    name,
                    where,
                    reads_records=reads_records,
                    takes_arrow=self._takes_arrow(name),
                ).start()
            if mix.has_askers:
                EndAsker(self._place, f"asker-{number}", where).start()

    def _on_partition(self, topic_partition: TopicPartition) -> None:
        if topic_partition.topic == MAIN_TOPIC and not self._is_healed:
            self._start_both(topic_partition)

    def _start_both(self, topic_partition: TopicPartition) -> None:
        planned = ProducerPlan(topic_partition.partition, -1, 3, 200.0, 2)
        self._start_producer(len(self.producers) + 1, topic_partition, planned)
        self._start_consumer(topic_partition)

    def _start_producer(self, number: int, topic_partition: TopicPartition, planned: ProducerPlan) -> None:
        producer = Producer(
            self._place,
            number,
            topic_partition,
            acks=planned.acks,
            in_flight_max=planned.in_flight_max,
            interval_ms=planned.interval_ms,
            records_max=planned.records_max,
            has_keys=self._is_compacted(topic_partition),
            crash_every_ms=self.plan.mix.crash_every_ms,
            arrow_share=self.plan.mix.arrow_share,
        )
        self.producers.append(producer)
        producer.start()

    def _start_consumer(self, topic_partition: TopicPartition) -> None:
        name = f"consumer-{len(self.consumers)}"
        consumer = Consumer(
            self._place,
            name,
            topic_partition,
            reads_records=self._is_compacted(topic_partition),
            takes_arrow=self._takes_arrow(name),
        )
        self.consumers.append(consumer)
        consumer.start()
        if self._crews or self._jobs:
            name = f"committed-{len(self._committed_readers)}"
            reader = CommittedReader(self._place, name, topic_partition, self.cluster.witness.transactions)
            self._committed_readers.append(reader)
            reader.start()

    def _takes_arrow(self, name: str) -> bool:
        return self.plan.mix.arrow_share > 0 and dice(self.plan.seed, f"{name} takes arrow").random() < 0.5

    def _is_compacted(self, topic_partition: TopicPartition) -> bool:
        return self.plan.is_compacted and topic_partition.topic == MAIN_TOPIC

    # ---- trouble and peace ---------------------------------------------------------------------------------

    def _run_faults(self) -> None:
        self._run_until(max(self.plan.faults_end_ms, FAULTS_BEGIN_MS))

    def _heal(self) -> None:
        """The longest fault ends by itself soon; from then on nothing new goes wrong."""
        schedule = self.cluster.schedule
        self.cluster.is_calm = True
        begun = [fault for fault in self.plan.faults if fault.at_ms <= schedule.now_ms]
        ends = [fault.at_ms + fault.duration_ms for fault in begun]
        self._run_until(max([schedule.now_ms, *ends]) + 1)
        self.strikes.mend()
        self.cluster.witness.recorder.healed_us = schedule.now_us
        self.cluster.story.tell("HEALED", "nothing goes wrong any more")
        self._is_healed = True
        for crowd in self._everybody:
            crowd.calm()
        if self._typed is not None:
            self._typed.calm()
        if self._operators is not None:
            self._operators.calm()
        for reader in self._committed_readers:
            reader.is_hushed = True
        self._run_until(schedule.now_ms + QUIET_MS)
        for producer in self.producers:
            producer.is_stopping = True
        for plain in self._plain:
            plain.is_stopping = True
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

    def _hear_from_producers(self) -> None:
        """A cluster at rest takes what it is given, and comes to rest again."""
        schedule = self.cluster.schedule
        self._tell_of_new_topics()
        self.cluster.witness.recorder.rested_us = schedule.now_us
        self._run_until(schedule.now_ms + 1)
        asked = self._producers_with_a_topic()
        for producer in asked:
            producer.send_a_batch()
        deadline_ms = schedule.now_ms + CLIENTS_PATIENCE_MS
        while any(producer.waiting for producer in asked) and schedule.now_ms < deadline_ms:
            self._run_until(schedule.now_ms + LOOK_MS)
        if not any(producer.waiting for producer in asked):
            self._converge()

    def _producers_with_a_topic(self) -> list[Producer]:
        """A controller may come late to a deletion that it was asked for twice, or by who gave up since."""
        return [one for one in self.producers if one.topic_partition in self.cluster.witness.truths]

    def _tell_of_new_topics(self) -> None:
        """A producer gives up what it sent when it learns that its topic is another one. That is its own
        choice, and nothing that the cluster failed to answer: so it learns that, and who it is then, before
        it is asked to send.
        """
        schedule, truths = self.cluster.schedule, self.cluster.witness.truths
        deadline_ms = schedule.now_ms + CLIENTS_PATIENCE_MS
        while late := [
            one
            for one in self._producers_with_a_topic()
            if one.means_another(truths[one.topic_partition].topic_id) or not one.identity.is_known
        ]:
            if schedule.now_ms > deadline_ms:
                what = "is told of a topic that was deleted" if late[0].identity.is_known else "has no id yet"
                raise Violation("ComesToRest", f"{late[0].name} {what}")
            for producer in late:
                producer.find_leader()
            self._run_until(schedule.now_ms + LOOK_MS)

    def _wait_for_clients(self) -> None:
        """Until they have their answers and have read what there is, or for long enough."""
        schedule = self.cluster.schedule
        deadline_ms = schedule.now_ms + CLIENTS_PATIENCE_MS
        while schedule.now_ms < deadline_ms:
            if not any(one.waiting for one in self.producers) and not any(one.waiting for one in self._plain):
                break
            self._run_until(schedule.now_ms + LOOK_MS)
        self._run_until(schedule.now_ms + QUIET_MS)

    def _unrest(self) -> str | None:
        """What is still missing to rest."""
        self.operator.look()
        if self.operator.is_busy:
            return "an operator has not done yet"
        if self._operators is not None and (trouble := self._operators.unrest()) is not None:
            return trouble
        for host, broker in self.cluster.brokers.items():
            if not broker.is_registered:
                return f"{host} is not registered"
        if (trouble := self.strikes.unrest) is not None:
            return trouble
        if doomed := self.cluster.world.ensemble.tree.children(DELETE_TOPICS):
            return f"topics {doomed} are not deleted yet"
        if self.cluster.administrator.errands:
            return "an administrator has not done yet"
        for crowd in self._everybody:
            if (trouble := crowd.unrest()) is not None:
                return trouble
        if self._typed is not None and (trouble := self._typed.unrest(self._typed_replicas())) is not None:
            return trouble
        tiers = self.cluster.witness.tiers
        if tiers is not None and (trouble := tiers.unrest(self.cluster.witness.truths.values())) is not None:
            return trouble
        truths = self.cluster.witness.truths
        for truth in truths.values():
            trouble = self._partition_unrest(truth)
            if trouble is not None:
                return f"{truth.topic_partition}: {trouble}"
        return self._unrest_of_clients()

    def _typed_replicas(self) -> list[Partition]:
        bodies = [broker.body for broker in self.cluster.brokers.values() if broker.body is not None]
        found = (body.replicas.get(TopicPartition(TYPED_TOPIC, 0)) for body in bodies)
        return [partition for partition in found if partition is not None]

    def _unrest_of_clients(self) -> str | None:
        truths = self.cluster.witness.truths
        for producer in self.producers:
            if not producer.identity.is_known:
                return f"{producer.name} still waits for its id"
            if producer.waiting and producer.topic_partition in truths:
                return f"{producer.name} still waits for {len(producer.waiting)} answers"
        for plain in self._plain:
            if plain.waiting:
                return f"{plain.name} still waits for {plain.waiting} answers"
        for consumer in (*self.consumers, *self._committed_readers):
            if consumer.topic_partition in truths:
                trouble = consumer_unrest(consumer, truths[consumer.topic_partition])
                if trouble is not None:
                    return trouble
        return None

    def _partition_unrest(self, truth: PartitionTruth) -> str | None:
        state = truth.state
        if state is None or not state.has_leader:
            return f"there is no leader in {state}"
        if state.adding or state.removing:
            return f"it is still being moved: {state}"
        if set(state.isr) != set(state.replicas):
            return f"the ISR is {list(state.isr)}"
        for host, machine in self.cluster.machines.items():
            trouble = self._replica_unrest(truth, state, host, machine)
            if trouble is not None:
                return f"{host} {trouble}"
        return None

    def _replica_unrest(
        self, truth: PartitionTruth, state: PartitionState, host: str, machine: Machine
    ) -> str | None:
        broker_id = machine.broker_id
        body = self.cluster.brokers[host].body
        if body is None:
            return "has not opened its logs"
        replicas, told = body.replicas, body.context.metadata.partition(truth.topic_partition)
        if told is None or (told.leader, told.leader_epoch) != (state.leader, state.leader_epoch):
            return f"tells clients of {told}; ZooKeeper has {state}"
        partition = replicas.get(truth.topic_partition)
        if broker_id not in state.replicas:
            if partition is not None:
                return "has a replica still that was moved away"
            left = [one for one in machine.disk.directories if one.endswith(f"/{truth.topic_partition}")]
            return f"has a log still of a replica that it has not: {left}" if left else None
        if partition is None:
            return "has no replica"
        if partition.is_leader != (state.leader == broker_id):
            return f"has another idea of who leads than ZooKeeper, which names {state.leader}"
        if not partition.high_watermark == partition.log_end_offset == truth.committed_end:
            return (
                f"has high watermark {partition.high_watermark} and end {partition.log_end_offset}; "
                f"committed is {truth.committed_end}"
            )
        if partition._replica.marks.last_stable_offset != truth.committed_end:
            marks = partition._replica.marks
            return (
                f"has the last stable offset {marks.last_stable_offset}; committed is {truth.committed_end}"
            )
        view = truth.view(broker_id)
        if view.matched < len(view.entries) or view.shared_end < truth.committed_end:
            return "has another log than the committed one"
        return None


class _ExceptionsAreViolations(logging.Handler):
    """Shipped code logs what it survives; here a failure of ours must not be survived unseen."""

    def __init__(self, *, is_deaf: bool) -> None:
        super().__init__(logging.ERROR)
        self._is_deaf = is_deaf

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
        if isinstance(error, Exception) and not isinstance(error, OSError) and not self._is_deaf:
            raise Violation("NothingFails", f"{record.getMessage()}: {error!r}") from error
