"""The page's overview with many partitions, and what a page costs that nobody looks at.

No browser: what one asks for is asked for over HTTP (the document, what it names, the overview's figures), of
a page's process that has answered nothing before. Nothing of a browser's own work is in it.
"""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from bench.aims import at_most
from bench.clusters import SPARKLOG, Pair, Sparklog
from bench.kafka_clients import first_write, quiet, wait_in_sync
from bench.machine import CACHE, end, launch, memory_of, wait_until
from bench.page_load import first_paint
from bench.report import PartResult, Row
from bench.scale import Scale, say
from bench.turns import pairs_row, ratio_row

FEW: Final = 3
PARTITIONS_PER_TOPIC: Final = 100
PAINTS: Final = 5
AGAIN_S: Final = 5.0
"""Until the page asks brokers anew."""
SETTLE_S: Final = 3.0
TIMEOUT_S: Final = 240.0
WAYS: Final = {"with": "0", "without": "-1"}
"""``web.port``."""


def overview(pair: Pair, scale: Scale) -> PartResult:
    pair.stop()  # what else runs here would be measured too
    first: dict[str, list[float]] = {}
    again: dict[str, list[float]] = {}
    for partitions in (scale.overview_partitions, FEW):
        cluster = Sparklog()
        try:
            cluster.start()
            cluster.wait_ready()
            _create(cluster, partitions)
            paints = [_paints(cluster) for _ in range(PAINTS)]
        finally:
            cluster.stop()
        first[str(partitions)], again[str(partitions)] = ([one[nth] for one in paints] for nth in (0, 1))
        say(f"overview, {partitions:,} partitions: {median(first[str(partitions)]):.3f} s")
    what = f"{scale.overview_partitions:,} partitions against {FEW}"
    rows = [
        ratio_row(f"overview, first complete answer, {what}", first, "s", at_most(3)),
        ratio_row("the same, a later one", again, "s"),
        *_unseen(scale),
    ]
    return PartResult(rows, ["Over HTTP, without a browser: the document, its files, and the figures."])


def _create(cluster: Sparklog, partitions: int) -> None:
    """The topics that are there already, of the cluster itself, come on top of them."""
    admin = AdminClient(quiet(cluster.bootstrap))
    while partitions:
        count = min(partitions, PARTITIONS_PER_TOPIC)
        topic = f"shown-{partitions}"
        made = admin.create_topics([NewTopic(topic, count, 3)], operation_timeout=TIMEOUT_S)
        made[topic].result(TIMEOUT_S)
        partitions -= count
    wait_in_sync(cluster.bootstrap, topic, TIMEOUT_S)
    time.sleep(SETTLE_S)


def _paints(cluster: Sparklog) -> tuple[float, float]:
    """Seconds of the first one of a new page, and of one some seconds later."""
    with _page(cluster) as url:
        first = first_paint(url)
        time.sleep(AGAIN_S)
        return first, first_paint(url)


@contextmanager
def _page(cluster: Sparklog) -> Iterator[str]:
    """`sparklog page`; its address once it listens."""
    log = CACHE / "page.log"
    log.unlink(missing_ok=True)
    command = [SPARKLOG, "page", "--root", str(cluster.folder), "--port", "0"]
    process = launch(command, log)
    try:
        wait_until(lambda: _address(log) is not None or process.poll() is not None, TIMEOUT_S, "a page")
        if (address := _address(log)) is None:
            raise RuntimeError(f"sparklog page ended: {log.read_text()[-800:]}")
        yield address
    finally:
        end(process)


def _address(log: Path) -> str | None:
    found = re.search(r"(http://127\.0\.0\.1:\d+)/?\s", log.read_text())
    return None if found is None else found[1]


# ---- a page that nobody looks at ---------------------------------------------------------------------------


def _unseen(scale: Scale) -> list[Row]:
    """Starts, and the memory of driver's Python and brokers after them, with a page and without."""
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    memory: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(scale.pairs):
        for way in list(WAYS)[:: -1 if number % 2 else 1]:
            cluster = Sparklog({"web.port": WAYS[way]})
            try:
                began = time.monotonic()
                cluster.start()
                first_write(cluster.bootstrap)
                seconds[way].append(time.monotonic() - began)
                cluster.wait_ready()
                _check_page(cluster, way)
                time.sleep(SETTLE_S)
                pids = [cluster.other_pids()["controller"], *cluster.broker_pids().values()]
                memory[way].append(memory_of(pids).pss_mb)
            finally:
                cluster.stop()
            say(f"overview, {way} a page: start {seconds[way][-1]:.2f} s, {memory[way][-1]:.0f} MB")
    what = "with a page that nobody looks at, against without"
    return [
        pairs_row(f"start to first acknowledged write, {what}", seconds, "s", at_most(1.05)),
        pairs_row(f"memory of driver's Python and brokers, PSS, {what}", memory, "MB", at_most(1.05)),
    ]


def _check_page(cluster: Sparklog, way: str) -> None:
    described = json.loads((cluster.folder / "cluster.json").read_text())
    is_there = described["controllers"][0]["web_url"] is not None
    if is_there != (way == "with"):
        raise RuntimeError(f"started {way} a page, and there is {'one' if is_there else 'none'}")
