"""Writers and readers of typed rows while columns change: what they tell is clean, and every kind is told."""

import json
import threading
import time
from random import Random

import pytest

from chaos.access import Access
from chaos.clients.client_parts import Settings
from chaos.clients.finale import dump_replicas, read_everything
from chaos.clients.typed import typed_reads, typed_writes
from chaos.typed.changes import change_columns, columns_now
from chaos.typed.columns import DDL, KEY, TOPIC
from histories import Limits, Writer, check, read_history
from sparklog.testing import InProcessCluster

TOPICS = {TOPIC: 2}
BROKERS = (1, 2, 3)
VERSIONS = 12
CHANGES = 15


def live(run, settings, folder):
    with Writer(folder / f"{settings.name.replace('/', '-')}.jsonl") as writer:
        run(settings, writer)


def lines(folder, what):
    """A line that is being written is not looked at."""
    texts = [path.read_text() for path in folder.glob("typed-*.jsonl")]
    found = [json.loads(line) for text in texts for line in text.split("\n")[:-1] if f'"f":"{what}"' in line]
    return [line for line in found if line["type"] == "ok"]


def until(condition, patience_s=120):
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.integration
@pytest.mark.timeout(240)
def test_typed_rows_are_read_back_equal_while_columns_change(tmp_path, monkeypatch):
    """By queries of all columns and of some, as JSON, and from the files of every replica."""
    monkeypatch.setattr(typed_reads, "QUERY_S", (0.2, 1.0))
    histories = tmp_path / "histories"
    histories.mkdir()
    with InProcessCluster(tmp_path / "cluster") as cluster:
        cluster.create_topic(TOPIC, partitions=TOPICS[TOPIC], schema=DDL, key=KEY)
        cluster.wait_for_isr(TOPIC, 3)
        access = Access(cluster.bootstrap_servers)
        clients = [
            (typed_writes.write, Settings("", "", "typed-1/0", access, TOPICS, str(histories), 1, rate=1e4)),
            (typed_reads.tail, Settings("", "", "typed-2/0", access, TOPICS, str(histories), 2)),
            (typed_reads.tail, Settings("", "", "typed-3/0", access, TOPICS, str(histories), 3)),
        ]
        threads = [threading.Thread(target=live, args=(*client, histories)) for client in clients]
        for thread in threads:
            thread.start()
        rng = Random(1)
        for number in range(CHANGES):
            written = len(lines(histories, "written"))
            change_columns(cluster.client, rng)
            until(lambda least=written + number % 2: len(lines(histories, "written")) >= least)
        until(lambda: len(lines(histories, "written")) >= VERSIONS)
        for (_, settings), thread in zip(clients, threads, strict=True):
            settings.is_stopping = True
            thread.join(60)
            assert not thread.is_alive()
        with Writer(histories / "harness.jsonl") as writer:
            writer.event("harness", "heal")
            assert read_everything(access, TOPICS, writer, columns_now(access)) > VERSIONS
    with Writer(histories / "dumps.jsonl") as writer:
        log_dirs = {broker: tmp_path / "cluster" / f"broker-{broker}" / "0" for broker in BROKERS}
        everyone = {(TOPIC, number): BROKERS for number in range(TOPICS[TOPIC])}
        assert dump_replicas(everyone, log_dirs, writer) == []
    verdict = check(read_history(*histories.glob("*.jsonl")), Limits(acks_min=1))
    assert verdict.findings == ()
    polls = lines(histories, "poll")
    assert any("cells" in line for line in polls)
    judged = {one.rule.name for one in verdict.judgements if one.is_judged}
    assert judged >= {"RowsKeepTheirColumns", "TransactionsAreAtomic", "VersionsAreWrittenOnce", "PollsGoOn"}
