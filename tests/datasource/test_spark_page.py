"""The code of docs/spark.md, as it stands there, and its ways to read less."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparklog.testing import InProcessCluster
from tests.datasource.queries import WAIT_S
from tests.pages import DOCS, blocks_of

pytestmark = pytest.mark.integration

PAGE = DOCS / "spark.md"
(UPDATE,) = (block.text for block in blocks_of(PAGE) if block.kind == "python")


def counts(cluster: InProcessCluster, at_least: int) -> list[tuple[str, str]]:
    found = cluster.consume("counts", at_least=at_least)
    return [((record.key or b"").decode(), (record.value or b"").decode()) for record in found]


@pytest.mark.proof
def test_running_counts_are_written_once_also_by_a_micro_batch_that_is_run_again(
    spark: Any, cluster: InProcessCluster, tmp_path: Path
) -> None:
    def run() -> None:
        code = UPDATE.replace("checkpoints/", f"{tmp_path}/")
        names = {"spark": spark, "brokers": {"bootstrap.servers": cluster.bootstrap_servers}}
        exec(compile(code, str(PAGE), "exec"), names)
        query: Any = names["query"]
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        assert query.awaitTermination(WAIT_S)

    for topic in ("words", "counts"):
        cluster.create_topic(topic)
    cluster.produce("words", ["a", "b", "a"])
    run()
    assert sorted(counts(cluster, 2)) == [("a", "2"), ("b", "1")]
    # As if the driver had died after its write, before Spark noted the micro-batch.
    shutil.rmtree(tmp_path / "word-counts" / "commits")
    cluster.produce("words", ["b"])
    run()
    assert counts(cluster, 3)[2:] == [("b", "2")]


def test_options_read_less_than_filters_and_find_the_same(
    cluster: InProcessCluster, read: Callable[..., Any]
) -> None:
    cluster.create_topic("less", partitions=2)
    for partition in range(2):
        cluster.produce("less", [str(i) for i in range(5)], partition=partition)
    everything = read("less")

    def rows(frame: Any) -> list[Any]:
        return sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())

    assert rows(read(assign='{"less":[1]}')) == rows(everything.where("partition = 1"))
    started = read("less", startingOffsets='{"less":{"0":3,"1":-2}}')
    assert rows(started) == rows(everything.where("partition = 1 or offset >= 3"))
    newest = everything.selectExpr("unix_millis(max(timestamp)) ms").first().ms
    late = read("less", startingTimestamp=str(newest), startingOffsetsByTimestampStrategy="latest")
    assert rows(late.where(f"unix_millis(timestamp) >= {newest}")) == rows(
        everything.where(f"unix_millis(timestamp) >= {newest}")
    )


def test_the_page_names_every_option_of_reads_and_writes() -> None:
    from sparklog_datasource.options.option_names import READ_OPTIONS, WRITE_OPTIONS

    named = set(re.findall(r"`([\w.]+)(?:=\w+)?`", PAGE.read_text()))
    of_the_connector = {"groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries",
                        "fetchOffset.retryIntervalMs"}  # fmt: skip
    assert {*READ_OPTIONS, *WRITE_OPTIONS} - named == of_the_connector
