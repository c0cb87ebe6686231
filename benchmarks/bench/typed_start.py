"""A start of a cluster that has many typed topics of many columns, against one whose topics are untyped."""

import time
from contextlib import ExitStack
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from bench.aims import at_most
from bench.clusters import Pair, Sparklog
from bench.kafka_clients import first_write, quiet, wait_in_sync
from bench.report import PartResult
from bench.scale import Scale, say
from bench.turns import ratio_row, ways_in_turn

COLUMNS: Final = 200
TOPICS_AT_ONCE: Final = 100
TIMEOUT_S: Final = 240.0
TYPES: Final = ("bigint", "double", "string", "timestamp")
SCHEMA: Final = ", ".join(f"c{nth} {TYPES[nth % len(TYPES)]}" for nth in range(COLUMNS))
CONFIGS: Final = {"typed": {"sparklog.schema": SCHEMA}, "untyped": {}}


def typed_start(pair: Pair, scale: Scale) -> PartResult:
    """Seconds to the first acknowledged write, of clusters that have ended in order."""
    pair.stop()  # what else runs here would be measured too
    with ExitStack() as closing:
        clusters = {}
        for kind, config in CONFIGS.items():
            clusters[kind] = Sparklog()
            closing.callback(clusters[kind].stop)
            _fill(clusters[kind], scale.typed_topics, config)

        def start(number: int, kind: str) -> float:
            cluster = clusters[kind]
            began = time.monotonic()
            cluster.start()
            cluster.wait_ready()
            first_write(cluster.bootstrap, f"written-{number}")
            seconds = time.monotonic() - began
            cluster.halt()
            return seconds

        seconds = ways_in_turn(scale.starts, ("typed", "untyped"), start)
    title = f"start with {scale.typed_topics:,} typed topics of {COLUMNS} columns against untyped"
    return PartResult([ratio_row(title, seconds, "s", at_most(1.1))], [])


def _fill(cluster: Sparklog, topics: int, config: dict[str, str]) -> None:
    began = time.monotonic()
    cluster.start()
    cluster.wait_ready()
    admin = AdminClient(quiet(cluster.bootstrap))
    names = [f"of-many-{number}" for number in range(topics)]
    for first in range(0, topics, TOPICS_AT_ONCE):
        wanted = [NewTopic(name, 1, 3, config=config) for name in names[first : first + TOPICS_AT_ONCE]]
        made = admin.create_topics(wanted, operation_timeout=TIMEOUT_S, request_timeout=TIMEOUT_S)
        for done in made.values():
            done.result(TIMEOUT_S)
    wait_in_sync(cluster.bootstrap, names[-1])
    cluster.halt()
    say(f"typed: {topics:,} topics in {time.monotonic() - began:.0f} s, start and stop included")
