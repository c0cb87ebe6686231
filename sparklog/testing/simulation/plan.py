"""What one seed stands for: the cluster's settings, the network's speed, the workload and the faults."""

from dataclasses import dataclass, replace
from typing import Final

from sparklog.testing.simulation.faults import Fault, draw_faults
from sparklog.testing.simulation.schedule import dice

BROKERS: Final = ("broker-1", "broker-2", "broker-3")
CONTROLLERS: Final = ("controller-a", "controller-b")
FAULTS_BEGIN_MS: Final = 1_500
FAULT_PHASES_MS: Final = (3_000, 5_000, 8_000)


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
    steps_max: int | None = None

    @property
    def min_insync_replicas(self) -> int:
        return int(self.settings["min.insync.replicas"])

    def with_faults(self, faults: tuple[Fault, ...]) -> "Plan":
        return replace(self, faults=faults)


def draw_plan(seed: int, *, steps_max: int | None = None, without_faults: bool = False) -> Plan:
    """The plan of a seed."""
    draw = dice(seed, "plan")
    partitions = draw.choice((1, 1, 2))
    settings = {
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
        "auto.create.topics.enable": "false",
        "default.replication.factor": "3",
        "zookeeper.session.timeout.ms": "2000",
    }
    records_max = draw.choice((1, 3))
    producers = tuple(
        ProducerPlan(
            partition=draw.randrange(partitions),
            acks=draw.choice((-1, -1, 1)),
            in_flight_max=draw.choice((1, 3, 5)),
            interval_ms=draw.choice((60.0, 120.0, 250.0)),
            records_max=records_max,
        )
        for _ in range(draw.choice((2, 3)))
    )
    low = draw.choice((0.2, 1.0, 3.0))
    faults_end_ms = FAULTS_BEGIN_MS + draw.choice(FAULT_PHASES_MS)
    faults = () if without_faults else tuple(
        draw_faults(
            dice(seed, "faults"),
            begin_ms=FAULTS_BEGIN_MS,
            end_ms=faults_end_ms,
            brokers=BROKERS,
            controllers=CONTROLLERS,
        )
    )  # fmt: skip
    return Plan(
        seed=seed,
        settings=settings,
        session_timeout_ms=draw.choice((1_000, 2_000)),
        delay_ms=(low, low * draw.choice((1.5, 10.0))),
        partitions=partitions,
        producers=producers,
        faults_end_ms=faults_end_ms,
        faults=faults,
        steps_max=steps_max,
    )
