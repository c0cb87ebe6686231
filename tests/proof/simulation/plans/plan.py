"""What one seed stands for: the cluster's settings, the network's speed, the workload and the faults."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from simulation.plans.client_links import ADMINISTRATOR, add_client_troubles
from simulation.plans.client_mix import NO_MIX, ClientMix, draw_mix
from simulation.plans.faults import DESTRUCTIVE_KINDS, EVERY_CLIENT, NO_HUNT, Fault, Hunt
from simulation.plans.groups import (
    GroupPlan,
    clients_of_group,
    draw_groups,
    draw_load_turn_us,
    settings_for_groups,
)
from simulation.plans.operations import (
    MINIMUM_KINDS,
    Operation,
    draw_operations,
    draw_times,
)
from simulation.plans.principals import (
    WITH_NAMES,
    WITH_PRINCIPALS,
    PrincipalPlan,
    draw_principals,
    settings_for_principals,
)
from simulation.plans.swarm import add_blackouts, add_flips, add_lost_disks, draw_faults
from simulation.plans.tier import (
    TierPlan,
    add_store_troubles,
    draw_tier,
    give_up_store,
    settings_for_tier,
    tiered_side_topic,
    tiered_typed_topic,
    with_tier,
)
from simulation.plans.transactions import (
    TransactionPlan,
    draw_transactions,
    has_pipelines,
    settings_for_transactions,
    transactional_id,
)
from simulation.plans.typed import TypedPlan, draw_typed
from simulation.plans.wishes import WishPlan, draw_wishes
from simulation.plans.writes import WritePlan, app_id, draw_writes
from simulation.schedule import dice

BROKERS: Final = ("broker-1", "broker-2", "broker-3")
MORE_BROKERS: Final = (*BROKERS, "broker-4", "broker-5")
ONE_DIRECTORY: Final = ("data",)
TWO_DIRECTORIES: Final = ("data-1", "data-2")
"""Of each broker."""

CONTROLLERS: Final = ("controller-a", "controller-b")
MAIN_TOPIC: Final = "quakes"
SIDE_TOPIC: Final = "flights"
"""The topic that stays, and the one that comes and goes."""

FAULTS_BEGIN_MS: Final = 1_500
FAULT_PHASES_MS: Final = (2_000, 4_000, 7_000)

PLAIN: Final[dict[str, str]] = {}
COMPACTED: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "delete.retention.ms": "1000",
    "segment.bytes": "500",
}
RETAINED: Final = {"retention.bytes": "1500", "segment.bytes": "500"}
AGED: Final = {"retention.ms": "1500", "segment.bytes": "500"}

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

COVERED: Final = 0.85
"""Share of the seeds with destructive faults in which two replicas have to have everything all the time, so
that these faults may do what they are called."""

SIZES: Final = ("segment.bytes", "retention.bytes", "local.retention.bytes", "log.segment.bytes")
SMALL_BYTES: Final = 10_000

Step = Fault | Operation


@dataclass(frozen=True, slots=True)
class ProducerPlan:
    """One producer."""

    partition: int
    acks: int
    in_flight_max: int
    interval_ms: float
    records_max: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a run depends on; two runs of one plan are the same, byte for byte."""

    seed: int
    settings: dict[str, str]
    session_timeout_ms: int
    delay_ms: tuple[float, float]
    partitions: int
    producers: tuple[ProducerPlan, ...]
    faults_end_ms: int
    faults: tuple[Fault, ...]
    operations: tuple[Operation, ...] = ()
    brokers: tuple[str, ...] = BROKERS
    directories: tuple[str, ...] = ONE_DIRECTORY
    topic_configs: dict[str, str] = field(default_factory=dict)
    side_configs: dict[str, str] = field(default_factory=dict)
    """Of the topic that comes and goes."""
    typed_configs: dict[str, str] = field(default_factory=dict)
    """Of the topic with columns."""
    mix: ClientMix = NO_MIX
    groups: tuple[GroupPlan, ...] = ()
    transactions: tuple[TransactionPlan, ...] = ()
    writes: tuple[WritePlan, ...] = ()
    tier: TierPlan | None = None
    typed: TypedPlan | None = None
    principals: PrincipalPlan | None = None
    wishes: WishPlan | None = None
    load_turn_us: int = 50
    """How long a coordinator takes at least to read the next piece of its log."""
    steps_max: int | None = None

    @property
    def may_lose_one(self) -> bool:
        """Whether replication promises to survive the loss of one replica's log: two must have everything."""
        changes = any(one.kind in MINIMUM_KINDS for one in self.operations)
        return int(self.settings["min.insync.replicas"]) >= 2 and not changes

    @property
    def has_transaction_states(self) -> bool:
        """Whether anybody asks a coordinator of transactions or of atomic writes."""
        in_typed = () if self.typed is None else self.typed.transactions
        uses_names = self.principals is not None and self.principals.name_users > 0
        return bool(self.transactions or self.writes or in_typed or uses_names)

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.topic_configs.get("cleanup.policy", "")

    @property
    def steps(self) -> tuple[Step, ...]:
        """Everything that can be left out."""
        return (*self.faults, *self.operations)

    def with_steps(self, steps: Sequence[Step]) -> "Plan":
        return replace(
            self,
            faults=tuple(one for one in steps if isinstance(one, Fault)),
            operations=tuple(one for one in steps if isinstance(one, Operation)),
        )


def _draw_settings(draw: random.Random) -> dict[str, str]:
    return {
        "min.insync.replicas": draw.choice(("1", "2", "2")),
        "replica.lag.time.max.ms": draw.choice(("600", "1000", "2000")),
        "replica.fetch.wait.max.ms": draw.choice(("50", "200", "500")),
        "replica.fetch.backoff.ms": draw.choice(("100", "500")),
        "replica.fetch.max.bytes": draw.choice(("200", "1000", "1048576")),
        "replica.socket.timeout.ms": draw.choice(("500", "1500")),
        "request.timeout.ms": draw.choice(("500", "2000")),
        "replica.high.watermark.checkpoint.interval.ms": draw.choice(("100", "1000", "5000")),
        "log.flush.offset.checkpoint.interval.ms": draw.choice(("500", "5000")),
        "log.segment.bytes": draw.choice(("500", "3000", "1048576")),
        "log.index.interval.bytes": draw.choice(("0", "300", "1000")),
        "log.flush.acks": draw.choice(("written", "written", "written", "fsync")),
        "replica.selector.class": draw.choice(("", "", RACK_AWARE)),
        "auto.create.topics.enable": "false",
        "default.replication.factor": "3",
        "zookeeper.session.timeout.ms": "2000",
        "log.cleaner.backoff.ms": draw.choice(("50", "300")),
        "log.cleaner.io.buffer.size": "4096",
        "log.retention.check.interval.ms": "300",
    }


def _draw_operations(seed: int, hunt: Hunt | None, end_ms: int) -> tuple[Operation, ...]:
    draw = dice(seed, "operations")
    if hunt is None:
        return draw_operations(draw, begin_ms=FAULTS_BEGIN_MS, end_ms=end_ms)
    return draw_times(draw, hunt.operations, begin_ms=FAULTS_BEGIN_MS, end_ms=end_ms)


def _draw_transactions(seed: int, hunt: Hunt | None) -> tuple[TransactionPlan, ...]:
    if hunt is None:
        return draw_transactions(seed)
    plans = draw_transactions(seed, share=hunt.transactions)
    return tuple(replace(plan, **hunt.producers) for plan in plans)


def _draw_writes(seed: int, hunt: Hunt | None) -> tuple[WritePlan, ...]:
    return draw_writes(seed) if hunt is None else draw_writes(seed, share=hunt.writes)


def _draw_tier(seed: int, hunt: Hunt | None) -> TierPlan | None:
    return draw_tier(seed) if hunt is None else draw_tier(seed, share=hunt.tier)


def _draw_typed(seed: int, hunt: Hunt | None) -> TypedPlan | None:
    return (
        draw_typed(seed) if hunt is None else draw_typed(seed, share=hunt.typed, conditions=hunt.conditions)
    )


def _draw_wishes(seed: int, hunt: Hunt | None) -> WishPlan | None:
    if hunt is None:
        return draw_wishes(seed)
    return draw_wishes(seed, share=hunt.wishes, throttles=hunt.throttles)


def _draw_producers(draw: random.Random, partitions: int) -> tuple[ProducerPlan, ...]:
    records_max = draw.choice((1, 3))
    return tuple(
        ProducerPlan(
            partition=draw.randrange(partitions),
            acks=draw.choice((-1, -1, 1)),
            in_flight_max=draw.choice((1, 3, 5)),
            interval_ms=draw.choice((80.0, 160.0, 300.0)),
            records_max=records_max,
        )
        for _ in range(draw.choice((2, 3)))
    )


def draw_plan(
    seed: int,
    *,
    steps_max: int | None = None,
    without_faults: bool = False,
    without_store: bool = False,
    hunt: Hunt | None = None,
) -> Plan:
    """The plan of a seed; with ``hunt`` the faults are of its kind, and nothing else goes on."""
    draw = dice(seed, "plan")
    partitions = draw.choice((1, 1, 2))
    settings = _draw_settings(draw)
    producers = _draw_producers(draw, partitions)
    low = draw.choice((0.2, 1.0, 3.0))
    faults_end_ms = FAULTS_BEGIN_MS + draw.choice(FAULT_PHASES_MS)
    delay_ms = (low, low * draw.choice((1.5, 10.0)))
    session_timeout_ms = draw.choice((1_000, 2_000))
    topic_configs = draw.choice((PLAIN, PLAIN, PLAIN, PLAIN, COMPACTED, COMPACTED, RETAINED, AGED))
    groups = draw_groups(seed) if hunt is None else draw_groups(seed, share=hunt.groups)
    if hunt is not None:
        topic_configs = COMPACTED if hunt.is_compacted else dict(hunt.topic_configs)
    is_compacted = "compact" in str(topic_configs)
    transactions = () if is_compacted else _draw_transactions(seed, hunt)
    writes = () if is_compacted else _draw_writes(seed, hunt)
    tier = None if is_compacted or without_store else _draw_tier(seed, hunt)
    if tier is not None:
        topic_configs = with_tier(seed, topic_configs)
        settings.update(settings_for_tier(seed, delay_ms))
    typed = _draw_typed(seed, hunt)
    if transactions or writes or (typed is not None and typed.transactions):
        settings.update(settings_for_transactions(seed, session_timeout_ms))
    if groups or has_pipelines(transactions):
        settings.update(settings_for_groups(seed, session_timeout_ms))
    if hunt is not None:
        settings.update(hunt.settings)
    mix = draw_mix(seed, is_compacted=is_compacted) if hunt is None else hunt.clients
    if mix.arrow_share:
        topic_configs, settings = _for_arrow(topic_configs), _for_arrow(settings)
    operations = _draw_operations(seed, hunt, faults_end_ms)
    is_cleaned = "cleanup.policy" in topic_configs or has_pipelines(transactions) or bool(writes)
    settings["log.cleaner.enable"] = str(is_cleaned).lower()
    wishes = None if without_faults else _draw_wishes(seed, hunt)
    brokers = MORE_BROKERS[: draw.choice((3, 3, 3, 4, 5))] if operations else BROKERS
    if wishes is not None and not operations:
        brokers = MORE_BROKERS[: wishes.brokers]
    directories = draw.choice((ONE_DIRECTORY, ONE_DIRECTORY, ONE_DIRECTORY, TWO_DIRECTORIES))
    faults = draw_faults(
        dice(seed, "faults"),
        begin_ms=FAULTS_BEGIN_MS,
        end_ms=faults_end_ms,
        brokers=brokers,
        controllers=CONTROLLERS,
        session_timeout_ms=session_timeout_ms,
        hunt=hunt or NO_HUNT,
    )
    if hunt is None and _is_covered(seed, faults):
        settings["min.insync.replicas"] = "2"
        operations = tuple(one for one in operations if one.kind not in MINIMUM_KINDS)
    if hunt is None:
        clients = _clients(
            len(producers), partitions, mix, groups, transactions, has_administrators=bool(operations)
        )
        clients = (*clients, *(app_id(number) for number in range(len(writes))))
        faults = _add_what_is_drawn_apart(seed, settings, faults, faults_end_ms, brokers, clients)
    if tier is not None and hunt is None:
        faults = add_store_troubles(seed, faults, begin_ms=FAULTS_BEGIN_MS, end_ms=faults_end_ms)
    if hunt is None:
        faults = add_lost_disks(
            dice(seed, "lost disks"),
            faults,
            begin_ms=FAULTS_BEGIN_MS,
            end_ms=faults_end_ms,
            brokers=brokers,
            has_store=tier is not None,
        )
        operations = give_up_store(dice(seed, "store given up"), operations, faults)
    share, names = (WITH_PRINCIPALS, WITH_NAMES) if hunt is None else (hunt.principals, hunt.names)
    principals = draw_principals(seed, faults, session_timeout_ms, share=share, names=names)
    if principals is not None:
        settings.update(settings_for_principals(principals))
        if principals.name_users:
            settings.update(settings_for_transactions(seed, session_timeout_ms))
    return Plan(
        seed=seed,
        settings=settings,
        session_timeout_ms=session_timeout_ms,
        delay_ms=delay_ms,
        partitions=partitions,
        producers=producers,
        faults_end_ms=faults_end_ms,
        faults=() if without_faults else tuple(faults),
        operations=() if without_faults else operations,
        brokers=brokers,
        directories=directories,
        topic_configs=topic_configs,
        side_configs={} if tier is None else tiered_side_topic(seed),
        typed_configs={} if tier is None else tiered_typed_topic(seed),
        mix=mix,
        groups=groups,
        transactions=transactions,
        writes=writes,
        tier=tier,
        typed=typed,
        principals=principals,
        wishes=wishes,
        load_turn_us=draw_load_turn_us(seed),
        steps_max=steps_max,
    )


def _clients(
    producers: int,
    partitions: int,
    mix: ClientMix,
    groups: tuple[GroupPlan, ...],
    transactions: tuple[TransactionPlan, ...],
    *,
    has_administrators: bool,
) -> tuple[str, ...]:
    """Who has links that may suffer. Producers twice: it is their retries that can do harm."""
    of_partitions = [
        kind
        for kind, is_there in (("consumer", True), ("rereader", mix.has_rereaders), ("asker", mix.has_askers))
        if is_there
    ]
    return (
        *(f"producer-{number}" for number in range(1, producers + 1)),
        *(f"producer-{number}" for number in range(1, producers + 1)),
        *(f"plain-{number}" for number in range(len(mix.plain_acks))),
        *(f"{kind}-{number}" for kind in of_partitions for number in range(partitions)),
        *(name for number, group in enumerate(groups) for name in clients_of_group(number, group)),
        *(transactional_id(number) for number in range(len(transactions))),
        *([ADMINISTRATOR] if has_administrators else []),
        EVERY_CLIENT,
        EVERY_CLIENT,
    )


def _add_what_is_drawn_apart(
    seed: int,
    settings: Mapping[str, str],
    faults: list[Fault],
    end_ms: int,
    brokers: tuple[str, ...],
    clients: tuple[str, ...],
) -> list[Fault]:
    begin_ms = FAULTS_BEGIN_MS
    if settings["log.flush.acks"] == "fsync":
        draw = dice(seed, "blackouts")
        faults = add_blackouts(draw, faults, begin_ms=begin_ms, end_ms=end_ms, brokers=brokers)
    faults = add_flips(dice(seed, "flips"), faults, begin_ms=begin_ms, end_ms=end_ms, brokers=brokers)
    return add_client_troubles(
        dice(seed, "client links"),
        faults,
        begin_ms=begin_ms,
        end_ms=end_ms,
        brokers=brokers,
        controllers=CONTROLLERS,
        clients=clients,
    )


def _for_arrow(settings: Mapping[str, str]) -> dict[str, str]:
    """Arrow batches are larger; as many of them are to fit into segments and logs."""
    return {
        name: str(3 * int(value)) if name in SIZES and int(value) < SMALL_BYTES else value
        for name, value in settings.items()
    }


def _is_covered(seed: int, faults: Sequence[Fault]) -> bool:
    is_destructive = any(fault.kind in DESTRUCTIVE_KINDS for fault in faults)
    return is_destructive and dice(seed, "cover").random() < COVERED
