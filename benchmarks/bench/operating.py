"""What operators do while others write: a restart of all brokers; a page that searches, and a scraper.

A load is librdkafka's: 50 records a second to each of six partitions, or as many as it can. Gaps are the
longest times without an acknowledgement of any partition.
"""

import time
from contextlib import nullcontext
from typing import Final

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bench.aims import at_least, at_most
from bench.clusters import Cluster, Kafka, Pair, Sparklog
from bench.faults import writes_again
from bench.kafka_clients import SteadyLoad, create_topic, flood, quiet, replicas, wait_in_sync
from bench.machine import wait_until
from bench.page_load import searching_page
from bench.report import PartResult, Row
from bench.scale import Scale, say
from bench.turns import pairs_row, ratio_row

TOPIC: Final = "operated"
PARTITIONS: Final = 6
PER_SECOND: Final = 50
SETTLE_S: Final = 3.0
TIMEOUT_S: Final = 240.0
PARTITIONS_PER_TOPIC: Final = 100
FLOODED: Final = "flooded"
SEARCHED: Final = "searched"
SEARCHED_S: Final = 1.0
"""How long is written what is searched."""

Figures = dict[str, list[float]]
"""Figures of the rounds, by what was done."""


def operating(pair: Pair, scale: Scale) -> PartResult:
    pair.stop()  # brokers are restarted and killed here, and a thousand partitions made
    found: dict[str, dict[str, Figures]] = {}
    kinds: list[type[Sparklog] | type[Kafka]] = [Sparklog, Kafka] if pair.with_kafka else [Sparklog]
    for kind in kinds:
        cluster = kind()
        try:
            cluster.start()
            cluster.wait_ready()
            found[kind.name] = _restarts(cluster, scale)
            if isinstance(cluster, Sparklog):
                beside = _beside_a_page(cluster, scale)
        finally:
            cluster.stop()
    rows = _restart_rows(found)
    what = f"a page that searches, /metrics every 5 s, {scale.page_partitions:,} partitions"
    rows += [
        pairs_row(f"{what}: throughput", beside["rate"], "MB/s", at_least(0.95)),
        pairs_row(f"{what}: gap after SIGKILL", beside["gap"], "s", at_most(1.2)),
    ]
    return PartResult(rows, [f"Six partitions, {PER_SECOND} records a second each; {scale.kills} restarts."])


# ---- a restart of all brokers ------------------------------------------------------------------------------


def _restarts(cluster: Cluster, scale: Scale) -> dict[str, Figures]:
    """``p99`` in ms and ``gap`` in s of each round: nothing happens, all restart, one is stopped in order."""
    create_topic(cluster.bootstrap, TOPIC, PARTITIONS)
    wait_in_sync(cluster.bootstrap, TOPIC)
    p99: Figures = {"restart": [], "none": []}
    gap: Figures = {"restart": [], "stop": []}
    with SteadyLoad(cluster.bootstrap, TOPIC, PARTITIONS, PER_SECOND) as load:
        load.wait_acknowledged()
        time.sleep(SETTLE_S)
        for _ in range(scale.kills):
            began = time.monotonic()
            time.sleep(scale.latency_s)
            p99["none"].append(load.p99_ms(began, time.monotonic()))
            began = time.monotonic()
            _restart_all(cluster)
            _settle(cluster)
            until = time.monotonic()
            p99["restart"].append(load.p99_ms(began, until))
            gap["restart"].append(load.gap_s(began, until))
            began = time.monotonic()
            broker = _leading(cluster)
            process = cluster.broker_pids()[broker]
            cluster.ask_to_stop(broker)
            cluster.revive(broker)
            _wait_relaunched(cluster, broker, process)
            _settle(cluster)
            gap["stop"].append(load.gap_s(began, time.monotonic()))
            delays = f"p99 {p99['none'][-1]:.0f} ms, in a restart of all {p99['restart'][-1]:.0f} ms"
            gaps = f"gap {gap['restart'][-1]:.2f} s, in a stop {gap['stop'][-1]:.2f} s"
            say(f"operating {cluster.name}: {delays}; {gaps}")
    return {"p99": p99, "gap": gap}


def _restart_all(cluster: Cluster) -> None:
    """Ours by its command; of Kafka one broker after the other, each when the last one is in every ISR."""
    before = cluster.broker_pids()
    if isinstance(cluster, Sparklog):
        cluster.run("brokers", "restart", "--all", timeout_s=TIMEOUT_S)
    else:
        for broker in before:
            cluster.ask_to_stop(broker)
            cluster.revive(broker)
            wait_in_sync(cluster.bootstrap, TOPIC, TIMEOUT_S)
    if same := [broker for broker, pid in cluster.broker_pids().items() if before[broker] == pid]:
        raise RuntimeError(f"{cluster.name}: brokers {same} have not been restarted")


def _wait_relaunched(cluster: Cluster, broker: int, process: int) -> None:
    wait_until(lambda: cluster.broker_pids().get(broker) not in (process, 0, None), TIMEOUT_S, "a relaunch")


def _settle(cluster: Cluster) -> None:
    time.sleep(1)
    wait_in_sync(cluster.bootstrap, TOPIC, TIMEOUT_S)
    time.sleep(SETTLE_S)


def _leading(cluster: Cluster) -> int:
    """The broker that leads most of the partitions."""
    leaders = [leader for leader, _ in replicas(cluster.bootstrap, TOPIC).values()]
    return max(set(leaders), key=leaders.count)


def _restart_rows(found: dict[str, dict[str, Figures]]) -> list[Row]:
    ours, kafka = found[Sparklog.name], found.get(Kafka.name)
    titles = {
        "p99": ("p99 of acknowledgements, `restart --all` against nothing", "ms", at_most(3)),
        "gap": ("longest gap, `restart --all` against the stop of one broker", "s", at_most(1.5)),
    }
    rows = []
    for name, (title, unit, aim) in titles.items():
        theirs = ratio_row(title, kafka[name], unit) if kafka else None
        beside = f"; Kafka's brokers one by one: {theirs.ours:.3g}, {theirs.note}" if theirs else ""
        rows.append(ratio_row(title, ours[name], unit, f"{aim}{beside}"))
    return rows


# ---- a page and a scraper ----------------------------------------------------------------------------------


def _beside_a_page(cluster: Sparklog, scale: Scale) -> dict[str, Figures]:
    """Throughput in MB/s and gaps in s, with a page that searches and without."""
    create_topic(cluster.bootstrap, FLOODED, PARTITIONS)
    create_topic(cluster.bootstrap, SEARCHED, PARTITIONS)
    _fill_up(cluster, scale.page_partitions)
    flood(cluster.bootstrap, SEARCHED, PARTITIONS, SEARCHED_S, {})
    flood(cluster.bootstrap, FLOODED, PARTITIONS, SEARCHED_S, {})
    found: dict[str, Figures] = {name: {"with": [], "without": []} for name in ("rate", "gap")}
    for number in range(scale.pairs):
        for way in ("with", "without")[:: -1 if number % 2 else 1]:
            page = searching_page(cluster.page_url, SEARCHED) if way == "with" else nullcontext()
            with page:
                found["rate"][way].append(flood(cluster.bootstrap, FLOODED, PARTITIONS, scale.flood_s, {}))
                found["gap"][way].append(_killed(cluster, number))
            _hand_back(cluster)
            rate, gap = (found[name][way][-1] for name in ("rate", "gap"))
            say(f"operating, {way} a page: {rate:.1f} MB/s, gap {gap:.2f} s")
    return found


def _fill_up(cluster: Sparklog, partitions: int) -> None:
    admin = AdminClient(quiet(cluster.bootstrap))
    wanted = [
        NewTopic(f"beside-{number}", PARTITIONS_PER_TOPIC, 3)
        for number in range(partitions // PARTITIONS_PER_TOPIC)
    ]
    made = admin.create_topics(wanted, operation_timeout=TIMEOUT_S, request_timeout=TIMEOUT_S)
    for done in made.values():
        done.result(TIMEOUT_S)
    _wait_all_in_sync(cluster)


def _killed(cluster: Sparklog, number: int) -> float:
    """The longest gap after SIGKILL of a broker that leads a third; ends when all partitions are whole.

    Each pair has another broker: five deaths of one soon after its starts are a crash loop, and it rests.
    """
    with SteadyLoad(cluster.bootstrap, TOPIC, PARTITIONS, PER_SECOND) as load:
        load.wait_acknowledged()
        time.sleep(SETTLE_S)
        processes = cluster.broker_pids()
        broker = sorted(processes)[number % len(processes)]
        process = processes[broker]
        began = time.monotonic()
        cluster.kill(broker)
        wait_until(
            lambda: all(writes_again(acks, began) for acks in load.acks.values()),
            TIMEOUT_S,
            "all are written",
        )
        _wait_relaunched(cluster, broker, process)
        _wait_all_in_sync(cluster)
        return load.gap_s(began, time.monotonic())


def _wait_all_in_sync(cluster: Sparklog) -> None:
    admin = AdminClient(quiet(cluster.bootstrap))

    def are_whole() -> bool:
        try:
            topics = admin.list_topics(timeout=10).topics.values()
        except KafkaException:
            return False
        return all(len(one.isrs) == 3 for topic in topics for one in topic.partitions.values())

    wait_until(are_whole, TIMEOUT_S, "all replicas of all topics are in sync", step_s=0.5)


def _hand_back(cluster: Sparklog) -> None:
    """Preferred leaders lead, so that the next one to be killed leads a third again."""
    admin = AdminClient(quiet(cluster.bootstrap))
    admin.elect_leaders(ElectionType.PREFERRED, None).result(TIMEOUT_S)
    time.sleep(1)
