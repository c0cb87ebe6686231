"""What security costs: TLS, many access rules, many logins at once; and whether quotas hold.

Clients of the clusters with rules log in by SCRAM, over TLS.
"""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.aims import at_least, at_most
from bench.clients import requests_per_s
from bench.clusters import Cluster, Pair, Sparklog
from bench.kafka_clients import SteadyLoad, create_topic, quiet, wait_in_sync
from bench.machine import CACHE, end, launch
from bench.report import PartResult, Row
from bench.scale import Scale, say
from bench.secured_clusters import USER, add_user, administrator, as_user, secured_cluster, security_files
from bench.turns import pairs_row, ratio_row
from sparklog.client.access_rules import create_rules
from sparklog.client.cluster import ClusterClient
from sparklog.client.security.quota_admin import QuotaAdmin
from sparklog.core.controller.commands.acl_commands import AclBinding
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rules import Pattern, PatternType, Rule
from sparklog.model.quota_entity import CLIENT_ID, QuotaEntity

FEW_RULES: Final = 10
RULES_AT_ONCE: Final = 250
OF_THE_TOPIC: Final = 10
"""One rule in so many is about the topic that is written, for another user."""

LOAD: Final = "loaded"
PARTITIONS: Final = 6
PER_SECOND: Final = 50
SETTLE_S: Final = 2.0

QUOTA_BYTES_PER_S: Final = 1_000_000
QUOTA_WARM_S: Final = 12.0
"""Longer than the eleven seconds over which a rate is measured: what is free at first is over then."""
VALUE: Final = b"x" * 1_000
NAMES: Final = ("produce", "fetch")
WITHIN: Final = (0.9, 1.1)
FLUSH_S: Final = 120.0


def security(pair: Pair, scale: Scale) -> PartResult:
    rows = _quotas(pair, scale)
    pair.stop()  # the next clusters run alone
    with security_files() as files:
        rows += _rules_and_logins(scale, files)
    return PartResult(
        rows,
        [
            "Quotas: of a client id, at one broker, after the first "
            f"{QUOTA_WARM_S:.0f} s; rules and logins: SCRAM over TLS, ours only.",
        ],
    )


# ---- quotas ------------------------------------------------------------------------------------------------


def _quotas(pair: Pair, scale: Scale) -> list[Row]:
    """Each system's rates under a quota, as shares of it; both quotas at once, one system after the other."""
    shares: dict[str, dict[str, float]] = {}
    for cluster in pair.all():
        for name in NAMES:
            create_topic(cluster.bootstrap, f"quota-{name}", 1)
            wait_in_sync(cluster.bootstrap, f"quota-{name}")
        _fill(cluster, int((QUOTA_WARM_S + scale.quota_s) * QUOTA_BYTES_PER_S * 2))
        with ClusterClient(cluster.bootstrap, client_id="bench-quotas") as client:
            quotas = QuotaAdmin(client)
            quotas.put(_entity("produce"), {"producer_byte_rate": QUOTA_BYTES_PER_S})
            quotas.put(_entity("fetch"), {"consumer_byte_rate": QUOTA_BYTES_PER_S})
        time.sleep(SETTLE_S)
        with ThreadPoolExecutor(len(NAMES)) as pool:
            produced = pool.submit(_produced, cluster, scale.quota_s)
            fetched = pool.submit(_fetched, cluster, scale.quota_s)
            rates = {"produce": produced.result(), "fetch": fetched.result()}
        shares[cluster.name] = {name: rate / QUOTA_BYTES_PER_S for name, rate in rates.items()}
        say(f"security {cluster.name}, shares of quotas: {shares[cluster.name]}")
    return [quota_row(name, shares, scale) for name in NAMES]


def _entity(name: str) -> QuotaEntity:
    return QuotaEntity(((CLIENT_ID, f"bound-{name}"),))


def _fill(cluster: Cluster, size: int) -> None:
    producer = Producer(quiet(cluster.bootstrap, acks="all", **{"linger.ms": 5}))
    for _ in range(size // len(VALUE)):
        while True:
            try:
                producer.produce("quota-fetch", VALUE)
            except BufferError:
                producer.poll(0.1)
            else:
                break
    if left := producer.flush(FLUSH_S):
        raise RuntimeError(f"{cluster.name}: {left} records were not written in {FLUSH_S:.0f} s")


def _produced(cluster: Cluster, seconds: float) -> float:
    """Bytes of values a second that are acknowledged to a client that never waits by itself."""
    settings = {"client.id": "bound-produce", "linger.ms": 5, "batch.size": 65_536}
    producer = Producer(
        quiet(cluster.bootstrap, acks="all", **settings, **{"queue.buffering.max.messages": 2_000})
    )
    acked = [0]

    def acknowledged(error: object, _: object) -> None:
        acked[0] += error is None

    def write_until(moment: float) -> None:
        while time.monotonic() < moment:
            try:
                producer.produce("quota-produce", VALUE, on_delivery=acknowledged)
            except BufferError:
                producer.poll(0.01)

    write_until(time.monotonic() + QUOTA_WARM_S)
    before, began = acked[0], time.monotonic()
    write_until(began + seconds)
    rate = (acked[0] - before) * len(VALUE) / (time.monotonic() - began)
    producer.purge()
    producer.flush(FLUSH_S)
    return rate


def _fetched(cluster: Cluster, seconds: float) -> float:
    """Bytes of values a second that a consumer gets who asks for more and more."""
    settings = {"client.id": "bound-fetch", "group.id": "bound", "enable.auto.commit": False}
    small = {"fetch.message.max.bytes": 250_000, "queued.max.messages.kbytes": 1_000}
    consumer = Consumer(quiet(cluster.bootstrap, **settings, **small))
    consumer.assign([TopicPartition("quota-fetch", 0, 0)])
    try:
        _consumed(consumer, QUOTA_WARM_S)
        began = time.monotonic()
        count = _consumed(consumer, seconds)
        return count * len(VALUE) / (time.monotonic() - began)
    finally:
        consumer.close()


def _consumed(consumer: Consumer, seconds: float) -> int:
    count, until = 0, time.monotonic() + seconds
    while (left_s := until - time.monotonic()) > 0:
        count += sum(one.error() is None for one in consumer.consume(500, min(left_s, 0.1)))
    return count


def quota_row(name: str, shares: dict[str, dict[str, float]], scale: Scale) -> Row:
    """Two bounds are no aim of one side: the remark says whether the rate is within them."""
    ours = shares[Sparklog.name][name]
    low, high = WITHIN
    verdict = "reached" if low <= ours <= high else "missed"
    others = [f"{system} {found[name]:.3g}" for system, found in shares.items() if system != Sparklog.name]
    aim = f"aim within a tenth of 1: {verdict}"
    return Row(
        f"rate under a {name} quota over {scale.quota_s:.0f} s",
        "of the quota",
        ours,
        more_is_better=False,
        note="; ".join([aim, *others]),
    )


# ---- rules and logins --------------------------------------------------------------------------------------


def _rules_and_logins(scale: Scale, files: Path) -> list[Row]:
    counts = {"many": scale.rules, "few": FEW_RULES}
    with ExitStack() as closing:
        clusters = {}
        for name, count in counts.items():
            clusters[name] = secured_cluster(files)
            closing.callback(clusters[name].stop)
            clusters[name].start()
            clusters[name].wait_ready()
            _prepare(clusters[name], files, count)
        access = as_user(files).librdkafka
        found: dict[str, list[float]] = {name: [] for name in counts}
        for number in range(scale.short_rounds):
            for name in list(counts)[:: -1 if number % 2 else 1]:
                found[name].append(requests_per_s(clusters[name], scale.short_round_s, access))
        say(f"security, small requests/s: { ({name: round(median(one)) for name, one in found.items()}) }")
        clusters["many"].stop()
        delays = _logins(clusters["few"], scale, files)
    what = f"{scale.logins} logins at once against none"
    return [
        pairs_row(
            f"small requests, {scale.rules:,} access rules against {FEW_RULES}", found, "1/s", at_least(0.95)
        ),
        ratio_row(f"p99 of others' acknowledgements, {what}", delays, "ms", at_most(2)),
    ]


def _prepare(cluster: Sparklog, files: Path, rules: int) -> None:
    """The user, so many rules, and the topics."""
    began = time.monotonic()
    with administrator(cluster, files) as admin:
        add_user(admin)
        wanted = rules_of(rules)
        for first in range(0, rules, RULES_AT_ONCE):
            create_rules(admin, wanted[first : first + RULES_AT_ONCE])
    access = as_user(files).librdkafka
    for topic, partitions in (("alone", 1), (LOAD, PARTITIONS)):
        create_topic(cluster.bootstrap, topic, partitions, security=access)
        wait_in_sync(cluster.bootstrap, topic, security=access)
    say(f"security: {rules:,} rules and two topics in {time.monotonic() - began:.0f} s")


def rules_of(count: int) -> list[AclBinding]:
    """First what the user needs, then others': of the same topic, of other topics, and of prefixes."""
    cluster = Pattern(ResourceType.cluster, "kafka-cluster")
    topics = [Pattern(ResourceType.topic, topic) for topic in ("alone", LOAD)]
    mine = [AclBinding(cluster, Rule(f"User:{USER}", AclOperation.create))]
    mine += [
        AclBinding(topic, Rule(f"User:{USER}", operation))
        for topic in topics
        for operation in (AclOperation.read, AclOperation.write)
    ]
    others = []
    for number in range(count - len(mine)):
        pattern = Pattern(ResourceType.topic, f"topic-{number}")
        if number % OF_THE_TOPIC == 0:
            pattern = Pattern(ResourceType.topic, "alone")
        elif number % 2:
            pattern = Pattern(ResourceType.topic, f"a{number}-", PatternType.prefixed)
        others.append(AclBinding(pattern, Rule(f"User:user-{number}", AclOperation.write)))
    return [*mine, *others]


def _logins(cluster: Sparklog, scale: Scale, files: Path) -> dict[str, list[float]]:
    """p99 in ms of a steady load, in storms of logins and in as much time before each."""
    access = as_user(files)
    script = str(Path(__file__).with_name("login_storm.py"))
    arguments = [cluster.bootstrap, str(scale.logins), LOAD, json.dumps(dict(access.java))]
    with (CACHE / "login-storm.log").open("wb") as log:
        storms = launch(
            [sys.executable, script, *arguments],
            CACHE / "login-storm.log",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    delays: dict[str, list[float]] = {"logins": [], "none": []}
    try:
        _answer(storms)
        _storm(storms)  # all code has run once
        with SteadyLoad(cluster.bootstrap, LOAD, PARTITIONS, PER_SECOND, access.librdkafka) as load:
            load.wait_acknowledged()
            time.sleep(SETTLE_S)
            for _ in range(scale.pairs):
                began = time.monotonic()
                seconds = _storm(storms)
                ended = time.monotonic()
                time.sleep(SETTLE_S)
                quiet_from = time.monotonic()
                time.sleep(ended - began)
                delays["none"].append(load.p99_ms(quiet_from, time.monotonic()))
                delays["logins"].append(load.p99_ms(began, ended))
                say(f"security: {scale.logins} logins in {seconds:.2f} s, p99 {delays['logins'][-1]:.0f} ms")
    finally:
        end(storms)
    return delays


def _storm(storms: "subprocess.Popen[str]") -> float:
    """Seconds of one."""
    assert storms.stdin is not None
    storms.stdin.write("\n")
    storms.stdin.flush()
    return float(_answer(storms))


def _answer(storms: "subprocess.Popen[str]") -> str:
    assert storms.stdout is not None
    if not (line := storms.stdout.readline()):
        raise RuntimeError(f"the logins ended: {(CACHE / 'login-storm.log').read_text()[-800:]}")
    return line.strip()
