"""How long a fault keeps acks=all writers waiting: the longest gap in acknowledgements of any partition.

librdkafka writes 50 records a second to each of six partitions. Each fault strikes, and is mended when all
partitions are written again, or by itself; then everybody is waited for until in every ISR.
"""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.clusters import Cluster, Kafka, Pair, Sparklog
from bench.kafka_clients import SteadyLoad, create_topic, replicas, wait_in_sync
from bench.machine import wait_until
from bench.report import PartResult, Row, longest_gap
from bench.scale import Scale, say

TOPIC: Final = "faults"
PARTITIONS: Final = 6
SETTLE_S: Final = 3.0
TAKES_HOLD_S: Final = 3.0
TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Fault:
    """``strike`` is given a broker that leads something; ``mend`` comes when all is written again."""

    title: str
    strike: Callable[[Cluster, int, float], None]
    mend: Callable[[Cluster, int], None]
    aim: str


def _nothing(cluster: Cluster, broker: int) -> None:
    """It mends itself."""


def _kill(cluster: Cluster, broker: int, session_s: float) -> None:
    cluster.kill(broker)


def _pause(cluster: Cluster, broker: int, session_s: float) -> None:
    _stop_for([cluster.broker_pids()[broker]], 1.5 * session_s)


def _pause_zookeeper(cluster: Cluster, broker: int, session_s: float) -> None:
    _stop_for([cluster.other_pids()["ZooKeeper"]], 2 * session_s)


def _stop_for(pids: list[int], seconds: float) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def _stop(cluster: Cluster, broker: int, session_s: float) -> None:
    cluster.ask_to_stop(broker)


def _kill_all(cluster: Cluster, broker: int, session_s: float) -> None:
    brokers = list(cluster.broker_pids())
    for one in brokers:
        cluster.kill(one)
    for one in brokers:
        cluster.revive(one)


def _revive(cluster: Cluster, broker: int) -> None:
    cluster.revive(broker)


FAULTS: Final = [
    Fault("SIGKILL of a leader", _kill, _revive, "below 1 s"),
    Fault("controlled stop of a leader", _stop, _revive, "below 0.3 s"),
    Fault("SIGSTOP of a leader for 1.5 sessions", _pause, _nothing, "below a session and 1 s"),
    Fault("ZooKeeper paused for two sessions", _pause_zookeeper, _nothing, ""),
    Fault("SIGKILL of all brokers, started again at once", _kill_all, _nothing, ""),
]


def faults(pair: Pair, scale: Scale) -> PartResult:
    kinds: list[type[Sparklog] | type[Kafka]] = [Sparklog, Kafka] if pair.with_kafka else [Sparklog]
    gaps: dict[tuple[str, str], tuple[float, float]] = {}
    for kind in kinds:
        cluster = kind({"zookeeper.session.timeout.ms": str(scale.fault_session_ms)})
        try:
            cluster.start()
            cluster.wait_ready()
            create_topic(cluster.bootstrap, TOPIC, PARTITIONS)
            for fault in FAULTS:
                gaps[fault.title, kind.name] = _one(cluster, fault, scale.fault_session_ms / 1000)
                led, other = gaps[fault.title, kind.name]
                say(f"faults {kind.name}, {fault.title}: {led:.2f} s where it led, else {other:.2f} s")
        finally:
            cluster.stop()
    return PartResult(_rows(gaps), [_note(scale)])


def _note(scale: Scale) -> str:
    return (
        f"Six partitions, 50 records a second each, ZooKeeper session {scale.fault_session_ms / 1000:.0f} s, "
        "one strike of each kind."
    )


def _rows(gaps: dict[tuple[str, str], tuple[float, float]]) -> list[Row]:
    rows = []
    for fault in FAULTS:
        ours, kafka = gaps[fault.title, Sparklog.name], gaps.get((fault.title, Kafka.name))
        others = [f"elsewhere {ours[1]:.2f} s"] + ([f"Kafka {kafka[1]:.2f} s"] if kafka else [])
        aim = [f"aim {fault.aim}"] if fault.aim else []
        rows.append(
            Row(
                f"longest gap, {fault.title}",
                "s",
                ours[0],
                kafka[0] if kafka else None,
                more_is_better=False,
                note="; ".join([*aim, ", ".join(others)]),
            )
        )
    return rows


def _one(cluster: Cluster, fault: Fault, session_s: float) -> tuple[float, float]:
    """Longest gap on what the broker led, and on the rest."""
    wait_in_sync(cluster.bootstrap, TOPIC, TIMEOUT_S)
    with SteadyLoad(cluster.bootstrap, TOPIC, PARTITIONS, per_second=50) as load:
        time.sleep(SETTLE_S)
        leaders = {number: leader for number, (leader, _) in replicas(cluster.bootstrap, TOPIC).items()}
        broker = max(set(leaders.values()), key=list(leaders.values()).count)
        began = time.monotonic()
        fault.strike(cluster, broker, session_s)
        wait_until(
            lambda: all(writes_again(acks, began) for acks in load.acks.values()),
            TIMEOUT_S,
            "all partitions are written",
        )
        fault.mend(cluster, broker)
        time.sleep(1)
        wait_in_sync(cluster.bootstrap, TOPIC, TIMEOUT_S)
        time.sleep(SETTLE_S)
        until = time.monotonic()
        gaps = {number: longest_gap(list(acks), began, until) for number, acks in load.acks.items()}
    led = max(gap for number, gap in gaps.items() if leaders[number] == broker)
    return led, max((gap for number, gap in gaps.items() if leaders[number] != broker), default=0.0)


def writes_again(acks: list[float], since: float) -> bool:
    """Ten acknowledgements within the last second. In the first seconds after a fault they say nothing."""
    now = time.monotonic()
    return now - since > TAKES_HOLD_S and sum(1 for at in acks[-100:] if at > now - 1) >= 10
