"""Apache Kafka's own command-line tools, release 3.9, unchanged: what an operator types works here."""

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.kafka_jars import java
from tests.waiting import until

pytestmark = [pytest.mark.clients, pytest.mark.integration]

TOOLS = "org.apache.kafka.tools"
REPORT_SECONDS = 20.0


@pytest.fixture
def tool(target) -> Callable[..., str]:
    """Runs a tool to its end; its output."""

    def run(
        main: str, *arguments: object, stdin: str = "", code: int = 0, server: str = "--bootstrap-server"
    ) -> str:
        line = [*java(), main, *([server, target.bootstrap_servers] if server else []), *map(str, arguments)]
        done = subprocess.run(line, input=stdin, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, f"{line}: {done.returncode}: {done.stdout} {done.stderr}"
        return done.stdout + done.stderr

    return run


@pytest.fixture
def consumer_groups(tool) -> Callable[..., str]:
    return lambda *arguments: tool(f"{TOOLS}.consumer.group.ConsumerGroupCommand", *arguments)


@pytest.fixture
def wide(make_topic, reference) -> str:
    """A topic of two partitions with ten records in each, a second apart."""
    topic, now = make_topic(2), int(time.time() * 1000) - 60_000
    for partition in range(2):
        records = [{"value": f"{n}", "partition": partition, "timestamp": now + n * 1000} for n in range(10)]
        reference.produce(topic=topic, records=records)
    return topic


# Topics and settings


def test_kafka_topics(tool, group):
    command = f"{TOOLS}.TopicCommand"
    name = f"{group}-t"
    tool(
        command,
        "--create",
        "--topic",
        name,
        "--partitions",
        2,
        "--replication-factor",
        3,
        "--config",
        "retention.ms=777",
    )
    assert name in tool(command, "--list").splitlines()
    described = tool(command, "--describe", "--topic", name)
    assert "PartitionCount: 2" in described
    assert "ReplicationFactor: 3" in described
    assert "retention.ms=777" in described
    tool(command, "--alter", "--topic", name, "--partitions", 3)
    assert "PartitionCount: 3" in tool(command, "--describe", "--topic", name)
    assert "already exists" in tool(command, "--create", "--topic", name, "--partitions", 1, code=1)
    assert name not in tool(command, "--describe", "--under-replicated-partitions")
    tool(command, "--delete", "--topic", name)
    until(lambda: name not in tool(command, "--list").splitlines())


def test_kafka_configs_of_topics(tool, topic):
    command = "kafka.admin.ConfigCommand"
    tool(
        command,
        "--alter",
        "--topic",
        topic,
        "--add-config",
        "retention.ms=5000,cleanup.policy=[compact,delete]",
    )
    described = tool(command, "--describe", "--topic", topic)
    assert "retention.ms=5000" in described
    assert "cleanup.policy=compact,delete" in described
    assert "DEFAULT_CONFIG:log.cleanup.policy" in tool(command, "--describe", "--topic", topic, "--all")
    tool(command, "--alter", "--topic", topic, "--delete-config", "retention.ms")
    assert "retention.ms" not in tool(command, "--describe", "--topic", topic)
    assert "InvalidConfig" in tool(
        command, "--alter", "--topic", topic, "--add-config", "retention.ms=soon", code=1
    )


def test_kafka_configs_of_brokers(tool):
    command = "kafka.admin.ConfigCommand"
    tool(command, "--alter", "--broker", 1, "--add-config", "log.cleaner.backoff.ms=12345")
    try:
        assert "log.cleaner.backoff.ms=12345" in tool(command, "--describe", "--broker", 1)
        everything = tool(command, "--describe", "--broker", 1, "--all")
        assert "num.io.threads=" in everything
        assert "log.retention.hours=168" in everything
    finally:
        tool(command, "--alter", "--broker", 1, "--delete-config", "log.cleaner.backoff.ms")
    tool(command, "--alter", "--broker-defaults", "--add-config", "log.retention.ms=99999999")
    try:
        assert "log.retention.ms=99999999" in tool(command, "--describe", "--broker-defaults")
    finally:
        tool(command, "--alter", "--broker-defaults", "--delete-config", "log.retention.ms")


def test_kafka_configs_of_quotas(tool, group):
    command = "kafka.admin.ConfigCommand"
    tool(command, "--alter", "--client", group, "--add-config", "producer_byte_rate=1048576")
    assert "producer_byte_rate=1048576" in tool(command, "--describe", "--client", group)
    tool(command, "--alter", "--client", group, "--delete-config", "producer_byte_rate")


def test_kafka_configs_of_users(tool, group):
    command = "kafka.admin.ConfigCommand"
    tool(command, "--alter", "--user", group, "--add-config", "consumer_byte_rate=2048")
    try:
        everybody = tool(command, "--entity-type", "users", "--describe")
        assert "consumer_byte_rate=2048" in everybody
        assert "SCRAM" not in everybody
        assert "consumer_byte_rate=2048" in tool(command, "--user", group, "--describe")
    finally:
        tool(command, "--alter", "--user", group, "--delete-config", "consumer_byte_rate")


def test_kafka_acls_of_an_open_cluster(tool, topic):
    rule = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", topic)
    for arguments in (("--list",), ("--add", *rule), ("--remove", "--force", *rule)):
        assert "SecurityDisabledException" in tool("kafka.admin.AclCommand", *arguments, code=1)


def test_kafka_delegation_tokens_of_an_open_cluster(tool, tmp_path):
    config = tmp_path / "client.properties"
    config.write_text("")
    command = (f"{TOOLS}.DelegationTokenCommand", "--command-config", config)
    token = ("--hmac", "c2VjcmV0")
    for arguments in (
        ("--describe",),
        ("--create", "--max-life-time-period", -1),
        ("--renew", "--renew-time-period", -1, *token),
        ("--expire", "--expiry-time-period", -1, *token),
    ):
        said = tool(*command, *arguments, code=1)
        assert "Delegation Token requests are not allowed on PLAINTEXT" in said


# Groups


def test_kafka_consumer_groups_of_a_living_group(consumer_groups, reference, wide, group):
    reference.join(member=group, group=group, topics=[wide], client="a-client")
    try:
        until(
            lambda: len(reference.state(member=group)["records"]) == 20,
            lambda: str(reference.state(member=group)),
        )
        reference.commit(member=group, offsets=[[wide, 0, 4, ""], [wide, 1, 10, ""]])
        assert group in consumer_groups("--list").split()
        assert re.search(rf"{group}\s+Stable", consumer_groups("--list", "--state", "Stable"))
        described = consumer_groups("--describe", "--group", group)
        assert re.search(
            rf"{group}\s+{wide}\s+0\s+4\s+10\s+6\s+a-client-\S+\s+/127.0.0.1\s+a-client", described
        )
        assert re.search(rf"{wide}\s+1\s+10\s+10\s+0\s", described)
        members = consumer_groups("--describe", "--group", group, "--members", "--verbose")
        assert re.search(r"a-client\s+2\s+\(0,1\)", members)
        assert re.search(r"range\s+Stable\s+1", consumer_groups("--describe", "--group", group, "--state"))
        refused = consumer_groups(
            "--group", group, "--topic", wide, "--reset-offsets", "--to-earliest", "--execute"
        )
        assert "inactive" in refused
        assert "GroupNotEmptyException" in consumer_groups("--delete", "--group", group)
        assert "GroupSubscribedToTopic" in consumer_groups(
            "--delete-offsets", "--group", group, "--topic", wide
        )
    finally:
        reference.leave(member=group)


RESETS = {
    "--to-earliest": (0, 0),
    "--to-latest": (10, 10),
    "--to-current": (4, 4),
    "--to-offset 7": (7, 7),
    "--to-offset 99": (10, 10),
    "--shift-by 3": (7, 7),
    "--shift-by -9": (0, 0),
    "--to-datetime": (6, 6),
    "--by-duration P30D": (0, 0),
}


@pytest.mark.parametrize("way", RESETS)
def test_kafka_consumer_groups_reset(consumer_groups, reference, wide, group, way):
    reference.set_group_offsets(group=group, offsets=[[wide, 0, 4], [wide, 1, 4]])
    words = way.split()
    if way == "--to-datetime":
        seventh = reference.read(topic=wide, partition=0, start=6, count=1)[0]["timestamp"]
        stamp = time.gmtime((seventh - 1) // 1000)
        words.append(time.strftime("%Y-%m-%dT%H:%M:%S", stamp) + f".{(seventh - 1) % 1000:03d}Z")
    ask = ["--group", group, "--topic", wide, "--reset-offsets", *words]
    wanted = RESETS[way]
    said = consumer_groups(*ask, "--dry-run")
    for partition, offset in enumerate(wanted):
        assert re.search(rf"{group}\s+{wide}\s+{partition}\s+{offset}\b", said), said
    assert reference.group_offsets(group=group) == [[wide, 0, 4], [wide, 1, 4]]
    consumer_groups(*ask, "--execute")
    assert reference.group_offsets(group=group) == [
        [wide, part, offset] for part, offset in enumerate(wanted)
    ]


def test_kafka_consumer_groups_reset_from_a_file(consumer_groups, reference, wide, group, tmp_path):
    reference.set_group_offsets(group=group, offsets=[[wide, 0, 4]])
    exported = consumer_groups(
        "--group", group, "--topic", wide, "--reset-offsets", "--to-offset", 2, "--export", "--dry-run"
    )
    plan = tmp_path / "plan.csv"
    plan.write_text("\n".join(line for line in exported.splitlines() if wide in line))
    consumer_groups("--group", group, "--reset-offsets", "--from-file", plan, "--execute")
    assert reference.group_offsets(group=group) == [[wide, 0, 2], [wide, 1, 2]]


def test_kafka_consumer_groups_delete(consumer_groups, reference, wide, group):
    reference.set_group_offsets(group=group, offsets=[[wide, 0, 4], [wide, 1, 4]])
    assert "Successful" in consumer_groups("--delete-offsets", "--group", group, "--topic", f"{wide}:0")
    assert reference.group_offsets(group=group) == [[wide, 1, 4]]
    assert "successful" in consumer_groups("--delete", "--group", group)
    assert group not in consumer_groups("--list").split()
    assert "GroupIdNotFound" in consumer_groups("--delete", "--group", group)
    assert "does not exist" in consumer_groups("--describe", "--group", group)


# Offsets, records, replicas


@pytest.fixture
def open_transaction(reference, topic):
    """The transactional id of an open transaction, which begins at offset 0 of the topic's only partition."""
    transactional_id = f"open-{topic}"
    reference.txn_init(producer=transactional_id, transactional_id=transactional_id)
    reference.txn_begin(producer=transactional_id)
    reference.txn_send(producer=transactional_id, topic=topic, records=[{"partition": 0, "value": "open"}])
    yield transactional_id
    reference.txn_close(producer=transactional_id)


def test_kafka_transactions(tool, reference, topic, open_transaction):
    command, partition = f"{TOOLS}.TransactionsCommand", ("--topic", topic, "--partition", 0)
    (listed,) = [line.split() for line in tool(command, "list").splitlines() if open_transaction in line]
    assert (listed[0], listed[-1]) == (open_transaction, "Ongoing")
    described = tool(command, "describe", "--transactional-id", open_transaction)
    assert re.search(rf"{open_transaction}.*Ongoing.*{topic}-0", described), described
    producers = tool(command, "describe-producers", *partition)
    assert re.search(rf"^{listed[2]}\s.*\s0\s*$", producers, re.MULTILINE), producers
    assert topic not in tool(command, "find-hanging", "--topic", topic)
    reference.produce(topic=topic, records=[{"partition": 0, "value": "behind it"}])
    tool(command, "abort", *partition, "--start-offset", 0)
    (seen,) = reference.read(topic=topic, partition=0, start="earliest", count=1, committed=True)
    assert seen["value"] == "behind it"


def test_kafka_transactions_finds_and_aborts_one_that_hangs(tool, target, reference, group):
    command, topic = f"{TOOLS}.TransactionsCommand", f"{group}-hanging"
    target.begin_hanging(topic, b"hanging")
    reference.produce(topic=topic, records=[{"partition": 0, "value": "behind it"}])
    found = tool(command, "find-hanging", "--topic", topic)
    assert re.search(rf"^{topic}\s+0\s+4000000\s+0\s", found, re.MULTILINE), found
    tool(command, "abort", "--topic", topic, "--partition", 0, "--start-offset", 0)
    (seen,) = reference.read(topic=topic, partition=0, start="earliest", count=1, committed=True)
    assert seen["value"] == "behind it"
    assert topic not in tool(command, "find-hanging", "--topic", topic)


def test_kafka_transactions_finds_hanging_ones_of_each_replica(tool, target, group):
    command, topic = f"{TOOLS}.TransactionsCommand", f"{group}-hanging"
    target.begin_hanging(topic, b"hanging")
    for broker in target.addresses():
        found = tool(command, "find-hanging", "--broker-id", broker)
        assert re.search(rf"^{topic}\s+0\s+4000000\s+0\s", found, re.MULTILINE), found
    tool(command, "abort", "--topic", topic, "--partition", 0, "--start-offset", 0)


def test_kafka_transactions_describes_producers_of_each_replica(tool, target, topic, open_transaction):
    del open_transaction  # it is there, at offset 0
    asked = ("describe-producers", "--topic", topic, "--partition", 0, "--broker-id")
    for broker in target.addresses():
        described = tool(f"{TOOLS}.TransactionsCommand", *asked, broker)
        assert re.search(r"^\d+\s.*\s0\s*$", described, re.MULTILINE), described


def test_kafka_dump_log_of_transactions(tool, target, topic, open_transaction):
    number = target.coordinator_partition(open_transaction)
    (segment,) = target.log_files("__transaction_state", number)
    files = ("--files", segment, "--transaction-log-decoder")
    ours = f"key: transaction_metadata::transactionalId={open_transaction} payload: producerId:"
    lines = []

    def are_there():
        dumped = tool("kafka.tools.DumpLogSegments", *files, server="").splitlines()
        lines[:] = [line for line in dumped if ours in line]
        return any(f"state=Ongoing,partitions=[{topic}-0]," in line for line in lines)

    until(are_there, lambda: str(lines))
    assert any("state=Empty,partitions=[]," in line for line in lines)


def test_kafka_get_offsets(tool, wide):
    command = f"{TOOLS}.GetOffsetShell"
    assert tool(command, "--topic", wide).splitlines() == [f"{wide}:0:10", f"{wide}:1:10"]
    assert tool(command, "--topic", wide, "--time", "earliest").splitlines() == [f"{wide}:0:0", f"{wide}:1:0"]
    assert tool(command, "--topic-partitions", f"{wide}:1", "--time", "max-timestamp").splitlines() == [
        f"{wide}:1:9"
    ]


def test_kafka_delete_records(tool, wide, reference, tmp_path):
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"version": 1, "partitions": [{"topic": wide, "partition": 0, "offset": 7}]}))
    assert "low_watermark: 7" in tool(f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", file)
    assert reference.offsets(topic=wide, partition=0)["earliest"] == 7


def test_kafka_reassign_partitions(tool, wide, tmp_path):
    command, plan = f"{TOOLS}.reassign.ReassignPartitionsCommand", tmp_path / "plan.json"
    parts = [{"topic": wide, "partition": part, "replicas": [1, 2]} for part in range(2)]
    plan.write_text(json.dumps({"version": 1, "partitions": parts}))
    assert "Successfully started" in tool(
        command, "--reassignment-json-file", plan, "--execute", "--throttle", 10_000_000
    )

    def is_done() -> bool:
        return tool(command, "--reassignment-json-file", plan, "--verify").count("is completed") >= 2

    until(is_done)
    assert tool(f"{TOOLS}.TopicCommand", "--describe", "--topic", wide).count("Replicas: 1,2") == 2
    moved = tmp_path / "topics.json"
    moved.write_text(json.dumps({"version": 1, "topics": [{"topic": wide}]}))
    proposed = tool(command, "--topics-to-move-json-file", moved, "--broker-list", "1,2,3", "--generate")
    assert "Proposed partition reassignment configuration" in proposed
    assert "No partition reassignments found" in tool(command, "--list")


def test_kafka_leader_election(tool, target, topic):
    leader = target.leader(topic, 0)
    target.stop_broker(leader)
    target.revive_broker(leader)
    target.wait_in_sync(topic)
    said = tool(
        f"{TOOLS}.LeaderElectionCommand", "--election-type", "preferred", "--topic", topic, "--partition", 0
    )
    assert "Successfully completed leader election" in said or "no leader election" in said.lower()
    assert target.leader(topic, 0) == leader


def test_kafka_log_dirs(tool, wide):
    said = json.loads(tool(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", wide).splitlines()[-1])
    assert sorted(one["broker"] for one in said["brokers"]) == [1, 2, 3]
    held = [part for one in said["brokers"] for folder in one["logDirs"] for part in folder["partitions"]]
    assert sorted(part["partition"] for part in held) == [f"{wide}-0"] * 3 + [f"{wide}-1"] * 3
    assert all(part["size"] > 0 for part in held)


def test_kafka_cluster_id(tool, target, reference):
    said = tool(
        f"{TOOLS}.ClusterTool", "cluster-id", "--bootstrap-server", target.bootstrap_servers, server=""
    )
    assert f"Cluster ID: {reference.cluster()['id']}" in said


def test_kafka_broker_api_versions(tool):
    said = tool("kafka.admin.BrokerApiVersionsCommand")
    for broker_id in (1, 2, 3):
        assert f"(id: {broker_id} rack:" in said
    assert "JoinGroup(11): 0 to 9" in said
    assert "Fetch(1): 0 to 15" in said


def test_kafka_replica_verification(tool, wide, target):
    line = [*java(), f"{TOOLS}.ReplicaVerificationTool", "--broker-list", target.bootstrap_servers]
    with subprocess.Popen(
        [*line, "--topics-include", wide, "--report-interval-ms", "500"], stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout is not None
            lines = []
            until(
                lambda: lines.append(running.stdout.readline()) or "max lag is 0" in lines[-1],
                lambda: str(lines),
                REPORT_SECONDS,
            )
        finally:
            running.kill()


# Records


def test_kafka_console_producer_and_consumer(tool, topic):
    lines = "k1:v1\nk2:v2\n"
    properties = [
        "--property",
        "parse.key=true",
        "--property",
        "key.separator=:",
        "--compression-codec",
        "zstd",
    ]
    tool("kafka.tools.ConsoleProducer", "--topic", topic, *properties, stdin=lines)
    read = tool(
        f"{TOOLS}.consumer.ConsoleConsumer", "--topic", topic, "--from-beginning", "--max-messages", 2,
        "--property", "print.key=true", "--property", "key.separator=:", "--property", "print.offset=true",
    )  # fmt: skip
    assert read.splitlines()[:2] == ["Offset:0:k1:v1", "Offset:1:k2:v2"]


def test_kafka_console_consumer_of_a_group(tool, wide, reference, group):
    command = f"{TOOLS}.consumer.ConsoleConsumer"
    tool(command, "--topic", wide, "--group", group, "--from-beginning", "--max-messages", 20)
    assert reference.group_offsets(group=group) == [[wide, 0, 10], [wide, 1, 10]]
    tool(command, "--topic", wide, "--partition", 1, "--offset", 8, "--max-messages", 2)


@pytest.mark.parametrize(
    ("formatter", "wanted"),
    [
        (f"{TOOLS}.consumer.OffsetsMessageFormatter", r"{group},{topic},0\D.*offset\W+4"),
        (f"{TOOLS}.consumer.GroupMetadataMessageFormatter", r"{group}.*range.*a-client"),
        (
            "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
            r"\[{group},{topic},0\]::.*offset=4",
        ),
        (
            "kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter",
            r"{group}::.*a-client",
        ),
    ],
)
def test_kafka_console_consumer_of_the_internal_topic(tool, wide, reference, group, formatter, wanted):
    reference.join(member=group, group=group, topics=[wide], client="a-client")
    until(lambda: len(reference.state(member=group)["assignment"]) == 2)
    reference.commit(member=group, offsets=[[wide, 0, 4, ""]])
    reference.leave(member=group)
    said = tool(
        f"{TOOLS}.consumer.ConsoleConsumer", "--topic", "__consumer_offsets", "--from-beginning",
        "--formatter", formatter, "--timeout-ms", 4000,
    )  # fmt: skip
    pattern = wanted.format(group=group, topic=wide)
    json_pattern = rf'"group":"{group}"'
    assert re.search(pattern, said) or re.search(json_pattern, said), said[-3000:]


def test_kafka_producer_and_consumer_performance(tool, target, topic):
    said = tool(
        f"{TOOLS}.ProducerPerformance", "--topic", topic, "--num-records", 5000, "--record-size", 100,
        "--throughput", -1,
        "--producer-props", f"bootstrap.servers={target.bootstrap_servers}", "acks=all", server="",
    )  # fmt: skip
    assert "5000 records sent" in said
    read = tool(f"{TOOLS}.ConsumerPerformance", "--topic", topic, "--messages", 5000, "--timeout", 20_000)
    assert re.search(r", 5\d\d\d, ", read), read


def test_kafka_producer_performance_in_transactions(tool, target, reference, topic):
    said = tool(
        f"{TOOLS}.ProducerPerformance", "--topic", topic, "--num-records", 3000, "--record-size", 100,
        "--throughput", 2000, "--transaction-duration-ms", 200, "--transactional-id", f"performance-{topic}",
        "--producer-props", f"bootstrap.servers={target.bootstrap_servers}", server="",
    )  # fmt: skip
    assert "3000 records sent" in said
    found = reference.read(topic=topic, partition=0, start="earliest", count=3000, committed=True)
    assert len(found) == 3000
    assert found[-1]["offset"] > 3000  # the markers of several transactions


def test_kafka_end_to_end_latency(tool, target, topic):
    said = tool(f"{TOOLS}.EndToEndLatency", target.bootstrap_servers, topic, 200, "all", 100, server="")
    assert "Percentiles" in said


def test_kafka_verifiable_producer_and_consumer(tool, target, topic, group):
    said = tool(f"{TOOLS}.VerifiableProducer", "--topic", topic, "--max-messages", 300, "--acks", -1)
    assert json.loads(said.splitlines()[-1])["acked"] == 300
    read = tool(
        f"{TOOLS}.VerifiableConsumer", "--topic", topic, "--group-id", group, "--max-messages", 300,
        "--reset-policy", "earliest",
    )  # fmt: skip
    counted = [json.loads(line) for line in read.splitlines() if '"records_consumed"' in line]
    assert sum(one["count"] for one in counted) == 300
    commits = [json.loads(line) for line in read.splitlines() if '"offsets_committed"' in line]
    assert all(one["success"] for one in commits)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_kafka_dump_log(tool, target, reference, topic, codec):
    reference.produce(
        topic=topic,
        records=[{"key": "k", "value": f"value {n}"} for n in range(5)],
        codec=codec,
        linger_ms=50,
    )

    def file() -> list[Path]:
        return [path for path in target.log_files(topic, 0) if path.stat().st_size]

    [segment] = until(file)
    said = tool(
        "kafka.tools.DumpLogSegments", "--files", segment, "--deep-iteration", "--print-data-log", server=""
    )
    assert f"compresscodec: {codec}" in said
    assert "isvalid: true" in said
    assert all(f"payload: value {n}" in said for n in range(5))


def test_kafka_dump_log_of_the_internal_topic(tool, target, reference, wide, group):
    reference.set_group_offsets(group=group, offsets=[[wide, 0, 4]])
    folder, number = "__consumer_offsets", target.coordinator_partition(group)

    def said() -> str:
        return "".join(
            tool("kafka.tools.DumpLogSegments", "--files", path, "--offsets-decoder", server="")
            for path in target.log_files(folder, number)
        )

    until(lambda: re.search(rf'"group":"{group}".*"offset":4|offset_commit::group={group}', said()), said)
