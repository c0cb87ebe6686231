"""What clusters tell about themselves over HTTP, when things go well and when they do not."""

import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import confluent_kafka
import pytest

from sparklog.client.group.group_admin import GroupAdmin
from sparklog.client.group.group_consumer import GroupConsumer
from sparklog.client.group.settings import MemberSettings
from sparklog.client.security.quota_admin import QuotaAdmin
from sparklog.client.transactions.transaction_admin import TransactionAdmin
from sparklog.client.transactions.writes.write_driver import abort_write, commit_write
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.client.transactions.writes.write_member import WriteMember
from sparklog.controller.metrics import controller_metrics
from sparklog.model.errors import KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.model.quota_entity import QuotaEntity
from sparklog.testing import InProcessCluster
from tests.certificates import Authority
from tests.waiting import until

pytestmark = pytest.mark.integration

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
ROW = re.compile(r"\| `(sparklog_\w+)` \| (\w+) \| ([^|]+) \| ([^|]+) \|")
HEAD = re.compile(r"# HELP (\S+) (.+)\n# TYPE \1 (\w+)\n")
TP = TopicPartition("t", 0)


def scrape(server) -> str:
    url = f"http://127.0.0.1:{server.metrics_port}/metrics"
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode()


def figures(server) -> dict[str, float]:
    """By name without ``sparklog_controller_`` or ``sparklog_broker_``."""
    lines = [line.rsplit(" ", 1) for line in scrape(server).splitlines() if not line.startswith("#")]
    return {re.sub("^sparklog_(controller|broker)_", "", name): float(value) for name, value in lines}


def wait_for(server, **expected: int) -> None:
    until(lambda: expected.items() <= figures(server).items(), lambda: f"{expected}, {figures(server)}")


def with_metrics(brokers: int, **options) -> InProcessCluster:
    settings = {"metrics.port": "0", **options.pop("settings", {})}
    return InProcessCluster(brokers=brokers, settings=settings, **options)


def test_the_page_lists_exactly_the_metrics_of_brokers_and_controllers(tmp_path) -> None:
    authority = Authority(tmp_path)
    with_tls = {"listeners": "SSL://:0", "security.inter.broker.protocol": "SSL"}
    settings = {**with_tls, **authority.settings(authority.issue("broker"))}
    with with_metrics(1, settings=settings) as cluster:
        with pytest.raises(KafkaError):
            cluster.admin.delete_topics(["missing"])
        QuotaAdmin(cluster.client).put(QuotaEntity((("user", None),)), {"producer_byte_rate": 1e9})
        until(lambda: cluster.brokers[1].body.context.quotas.is_active)
        cluster.create_topic("counted-for-a-quota")
        cluster.produce("counted-for-a-quota", ["x"])
        with socket.create_connection(("127.0.0.1", cluster.brokers[1].node.port)) as stranger:
            stranger.sendall(b"no TLS")
            stranger.recv(1)
        told = HEAD.findall(scrape(cluster.controller)) + HEAD.findall(scrape(cluster.brokers[1]))
    written = [(name, meaning, kind) for name, kind, meaning, _ in ROW.findall(PAGE.read_text())]
    assert written == told
    assert len(told) > 30, "a scrape without metrics agrees with every page"


def test_a_broker_says_how_long_it_has_been_cut_off_from_zookeeper() -> None:
    with with_metrics(1) as cluster:

        def away_ms() -> float:
            (line,) = [
                line
                for line in scrape(cluster.brokers[1]).splitlines()
                if line.startswith("sparklog_broker_zookeeper_away_milliseconds")
            ]
            return float(line.split()[-1])

        assert away_ms() == 0
        cluster.brokers[1].zookeeper.lose_connection()
        until(lambda: away_ms() > 0, "the absence")
        cluster.brokers[1].zookeeper.restore_connection()
        until(lambda: away_ms() == 0, "the return")


def test_an_unclean_election_is_counted_and_its_partition_is_offline_before_it() -> None:
    with with_metrics(2, settings={"unclean.leader.election.enable": "true"}) as cluster:
        cluster.create_topic("t")
        leader = cluster.wait_for_leader("t")
        cluster.kill(3 - leader)
        cluster.produce("t", ["only the leader has it"])
        wait_for(cluster.controller, active=1, live_brokers=1, offline_partitions=0)
        cluster.kill(leader)
        wait_for(cluster.controller, live_brokers=0, offline_partitions=1, unclean_elections_total=0)
        cluster.revive(3 - leader)
        wait_for(cluster.controller, live_brokers=1, offline_partitions=0, unclean_elections_total=1)


def test_a_clean_failover_is_not_counted_and_leaves_a_leader_that_is_not_preferred() -> None:
    with with_metrics(2) as cluster:
        cluster.create_topic("t")
        leader = cluster.wait_for_leader("t")
        wait_for(cluster.controller, preferred_replica_imbalance=0)
        cluster.kill(leader)
        cluster.wait_for_leader("t", other_than=leader)
        cluster.revive(leader)
        cluster.wait_for_isr("t", 2)
        wait_for(cluster.controller, preferred_replica_imbalance=1, unclean_elections_total=0)
        wait_for(cluster.brokers[3 - leader], leaders=1, partitions=1, under_replicated_partitions=0)
        wait_for(cluster.brokers[leader], leaders=0, partitions=1)


def test_a_follower_that_hangs_is_a_shrink_and_when_it_goes_on_an_expand() -> None:
    with with_metrics(2, settings={"replica.lag.time.max.ms": "500"}) as cluster:
        cluster.create_topic("t")
        leader = cluster.wait_for_leader("t")
        wait_for(
            cluster.brokers[leader], isr_shrinks_total=0, isr_expands_total=0, under_replicated_partitions=0
        )
        with cluster.brokers[3 - leader].body.replicas.get(TP).log_guard.lock:
            cluster.produce("t", ["acknowledged once the follower is out"])
            wait_for(  # the leader counts it when it has answered
                cluster.brokers[leader],
                isr_shrinks_total=1,
                isr_expands_total=0,
                under_replicated_partitions=1,
                under_min_isr_partitions=0,
            )
        wait_for(
            cluster.brokers[leader], isr_shrinks_total=1, isr_expands_total=1, under_replicated_partitions=0
        )


def test_partitions_with_too_few_replicas_in_sync_show_at_their_leader_alone() -> None:
    with with_metrics(2, settings={"min.insync.replicas": "2"}) as cluster:
        cluster.create_topic("t", partitions=2)
        wait_for(cluster.brokers[1], leaders=1, under_min_isr_partitions=0)
        cluster.kill(2)
        wait_for(cluster.brokers[1], leaders=2, under_min_isr_partitions=2, under_replicated_partitions=2)
        cluster.revive(2)
        wait_for(cluster.brokers[2], leaders=0, under_min_isr_partitions=0, under_replicated_partitions=0)
        wait_for(cluster.brokers[1], leaders=2, under_min_isr_partitions=0, isr_expands_total=2)


def test_a_disk_that_fails_shows_as_an_offline_directory_with_its_partitions() -> None:
    with with_metrics(1, log_dirs=2) as cluster:
        cluster.create_topic("t", partitions=4)
        wait_for(cluster.brokers[1], partitions=4, leaders=4, offline_partitions=0, offline_log_directories=0)
        parts = cluster.brokers[1].body.parts
        parts.failures.on_log_failed(parts.table.get(TP), "its disk is broken", is_suspect=False)
        wait_for(cluster.brokers[1], partitions=4, leaders=2, offline_partitions=2, offline_log_directories=1)


def test_groups_are_counted_by_state_at_the_coordinator_that_they_have_now() -> None:
    with with_metrics(2, settings={"offsets.topic.num.partitions": "4"}) as cluster:
        cluster.create_topic("t")
        admin = GroupAdmin(cluster.client)
        with GroupConsumer(cluster.client, MemberSettings(group_id="g", topics=frozenset({"t"}))) as member:
            until(lambda: member.poll(50) or member.assignment)
            first, other = coordinator_and_other(cluster, admin)
            wait_for(cluster.brokers[first], **of_groups(stable=1, empty=0, rebalances=1, committed=0))
            member.commit()
            wait_for(cluster.brokers[first], **of_groups(stable=1, committed=1))
            cluster.shut_down(first)
            wait_for(cluster.brokers[other], **of_groups(stable=1, rebalances=0, committed=0))
        wait_for(cluster.brokers[other], **of_groups(stable=0, empty=1))
        admin.delete(["g"])
        wait_for(cluster.brokers[other], **of_groups(empty=0, deleted=1))


def test_a_topic_s_records_and_bytes_are_counted_where_it_is_led_and_read() -> None:
    with with_metrics(1) as cluster:
        broker = cluster.brokers[1]
        cluster.create_topic("busy")
        cluster.produce("busy", ["a", "b", "c"])
        stored = cluster.brokers[1].body.replicas.get(TopicPartition("busy", 0)).log.size_bytes
        wait_for(broker, **of_busy(produced_records=3, produced_bytes=stored, fetched_bytes=0))
        assert figures(broker)['topic_log_bytes{topic="busy"}'] == stored
        cluster.consume("busy", at_least=3)
        until(lambda: figures(broker)['topic_fetched_bytes_total{topic="busy"}'] >= stored)
        read = figures(broker)
        timed = read['request_seconds_bucket{api="Produce",le="+Inf"}']
        assert timed == read['requests_total{api="Produce"}']


def of_busy(**expected: int) -> dict[str, int]:
    return {f'topic_{name}_total{{topic="busy"}}': value for name, value in expected.items()}


def coordinator_and_other(cluster: InProcessCluster, admin: GroupAdmin) -> tuple[int, int]:
    first = admin.describe("g").coordinator.id
    return first, 3 - first


def of_groups(**expected: int) -> dict[str, int]:
    names = {"stable": 'sparklog_groups{state="Stable"}', "empty": 'sparklog_groups{state="Empty"}'}
    names["rebalances"] = "sparklog_group_rebalances_total"
    names |= {word: f"sparklog_group_offsets_{word}_total" for word in ("committed", "expired", "deleted")}
    return {names[word]: value for word, value in expected.items()}


def test_a_controller_that_is_not_in_charge_tells_nothing_of_the_cluster() -> None:
    standby = SimpleNamespace(view=None, lossy_elections=0)
    assert {metric.value for metric in controller_metrics(standby)} == {0}


def test_no_port_is_open_and_no_library_imported_unless_metrics_are_wanted() -> None:
    program = (
        "import sys; from sparklog.testing import InProcessCluster\n"
        "with InProcessCluster(brokers=1) as cluster:\n"
        "    servers = [cluster.controller, cluster.brokers[1]]\n"
        "    print([one.metrics_port for one in servers], 'prometheus_client' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "[None, None] False\n", ran.stderr


def test_metrics_are_served_at_an_address_of_their_own() -> None:
    with with_metrics(1, settings={"metrics.host": "127.0.0.2"}) as cluster:
        for server in (cluster.brokers[1], cluster.controller):
            url = f"http://127.0.0.2:{server.metrics_port}/metrics"
            with urllib.request.urlopen(url, timeout=20) as answer:
                assert answer.read().startswith(b"# HELP sparklog_")
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", server.metrics_port), 5)


def test_metrics_of_brokers_and_controller_need_a_certificate_where_they_ask_for_one(tmp_path) -> None:
    """Also where clients' listeners are in the clear, and no other setting of TLS has an effect."""
    authority = Authority(tmp_path)
    settings = {
        "metrics.ssl.enable": "true",
        "metrics.ssl.client.auth": "required",
        **authority.settings(authority.issue("broker")),
    }
    context = ssl.create_default_context(cafile=authority.file)
    with with_metrics(1, settings=settings) as cluster:
        for server in (cluster.brokers[1], cluster.controller):
            url = f"https://127.0.0.1:{server.metrics_port}/metrics"
            with pytest.raises(OSError, match=r"certificate required|EOF|reset"):
                urllib.request.urlopen(url, context=context, timeout=20).read()
            shown = ssl.create_default_context(cafile=authority.file)
            shown.load_cert_chain(authority.issue("prometheus"))
            with urllib.request.urlopen(url, context=shown, timeout=20) as answer:
                assert answer.read().startswith(b"# HELP sparklog_")


def test_a_port_in_use_keeps_nobody_from_serving() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = {"metrics.port": str(taken.getsockname()[1])}
        with with_metrics(1, settings=settings) as cluster:
            assert (cluster.controller.metrics_port, cluster.brokers[1].metrics_port) == (None, None)
            cluster.create_topic("t")
            cluster.produce("t", ["a"])
            assert [record.value for record in cluster.consume("t", at_least=1)] == [b"a"]


def test_metrics_end_with_their_server() -> None:
    with with_metrics(2) as cluster:
        ports = {one.metrics_port for one in (cluster.controller, *cluster.brokers.values())}
        assert len(ports) == 3
        cluster.kill(1)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", cluster.brokers[1].metrics_port), 5)
        wait_for(cluster.brokers[2], partitions=0)
    assert not [thread for thread in threading.enumerate() if thread.name.endswith("-metrics")]
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 5)


def transactional(cluster: InProcessCluster, name: str, timeout_ms: int = 60_000) -> confluent_kafka.Producer:
    """A producer with an open transaction in t-0."""
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "transactional.id": name,
        "transaction.timeout.ms": timeout_ms,
        "message.timeout.ms": timeout_ms,
        "log_level": 0,
        "error_cb": lambda error: None,
    }
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    assert producer.flush(30) == 0
    return producer


def of_transactions(**ends: int) -> dict[str, int]:
    return {f'sparklog_transactions_ended_total{{outcome="{end}"}}': count for end, count in ends.items()}


def of_writes(**ends: int) -> dict[str, int]:
    return {f'sparklog_writes_ended_total{{outcome="{end}"}}': count for end, count in ends.items()}


def test_atomic_writes_are_counted_by_how_they_end_and_the_oldest_has_an_age() -> None:
    with with_metrics(1, settings={"transaction.state.log.num.partitions": "2"}) as cluster:
        cluster.create_topic("t")
        broker, members = cluster.brokers[1], []

        def join(version: int, timeout_ms: int = 60_000) -> WriteMember:
            identity = WriteIdentity("app", version, "run", is_plain=False, timeout_ms=timeout_ms)
            attempt = str(len(members))
            members.append(WriteMember(cluster.client, identity, attempt, timeout_ms=30_000))
            members[-1].open([TP])
            return members[-1]

        try:
            first, _ = join(1), join(1)
            wait_for(broker, sparklog_writes_open=1, sparklog_write_members=2, **of_writes(committed=0))
            began_s = figures(broker)["sparklog_writes_oldest_start_milliseconds"] / 1_000
            assert abs(began_s - time.time()) < 60
            first.finish()
            commit_write(cluster.client, first.write, [first.producer_id], timeout_ms=30_000)
            wait_for(broker, sparklog_writes_open=0, sparklog_write_members=0, **of_writes(committed=1))
            assert figures(broker)["sparklog_writes_oldest_start_milliseconds"] == 0
            abort_write(cluster.client, join(2).write, timeout_ms=30_000)
            wait_for(broker, **of_writes(committed=1, aborted=1, replaced=0, timed_out=0))
            join(3)
            join(4)
            wait_for(broker, **of_writes(committed=1, aborted=1, replaced=1, timed_out=0))
            abort_write(cluster.client, members[-1].write, timeout_ms=30_000)
            join(5, timeout_ms=100).close()
            wait_for(broker, **of_writes(committed=1, aborted=2, replaced=1, timed_out=1))
        finally:
            for member in members:
                member.close()


def test_transactions_are_counted_by_how_they_end_and_the_oldest_has_an_age() -> None:
    with with_metrics(1, settings={"transaction.state.log.num.partitions": "2"}) as cluster:
        cluster.create_topic("t")
        broker = cluster.brokers[1]
        first = transactional(cluster, "first")
        began_s = figures(broker)["sparklog_transactions_oldest_start_milliseconds"] / 1_000
        assert abs(began_s - time.time()) < 60
        second = transactional(cluster, "second")
        wait_for(broker, sparklog_transactions_open=2, **of_transactions(committed=0, aborted=0))
        first.commit_transaction(30)
        second.abort_transaction(30)
        wait_for(broker, sparklog_transactions_open=0, **of_transactions(committed=1, aborted=1))
        assert figures(broker)["sparklog_transactions_oldest_start_milliseconds"] == 0
        living = [transactional(cluster, "replaced")]
        TransactionAdmin(cluster.client).fence("replaced", 60_000)
        wait_for(broker, **of_transactions(committed=1, aborted=2, fenced=1, timed_out=0))
        living.append(transactional(cluster, "slow", timeout_ms=1_000))
        wait_for(broker, last_stable_offset_lag_max=1, sparklog_transactions_open=1)
        wait_for(broker, **of_transactions(committed=1, aborted=3, fenced=1, timed_out=1))
        wait_for(broker, last_stable_offset_lag_max=0, sparklog_transactions_open=0)
