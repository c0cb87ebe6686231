"""Moves of partitions: planned, carried out, watched, taken back; with plans that Kafka's tool reads too."""

import json
import signal
import threading
import time

import pytest

from sparklog.cli import progress
from sparklog.cli.cluster.reassign import execute as executing
from sparklog.cli.cluster.reassign.plan_file import parse_plan, plan_text, read_plan
from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.client.changes import ClusterChanges
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from tests.waiting import until

pytestmark = pytest.mark.integration

E0 = TopicPartition("events", 0)
WAIT_S = 60


@pytest.fixture
def plan(tmp_path):
    """Writes a plan, and gives its path."""

    def write(*partitions):
        path = tmp_path / "plan.json"
        listed = [{"topic": t, "partition": p, "replicas": list(replicas)} for t, p, *replicas in partitions]
        path.write_text(json.dumps({"version": 1, "partitions": listed}))
        return str(path)

    return write


@pytest.fixture
def topic(cluster):
    """``events``, with one partition, on brokers (leader, follower)."""
    cluster.create_topic("events", replication_factor=2)
    return cluster.partitions("events")[0].replicas


def others(*brokers):
    return [one for one in (1, 2, 3, 4) if one not in brokers]


def stuck(cluster, topic, plan):
    """A plan whose move cannot end, since its leader sends nothing; the file's path, and where it goes to."""
    new = others(*topic)[0]
    path = plan(("events", 0, topic[0], new))
    ClusterChanges(cluster.client).alter_broker_configs(topic[0], {"leader.replication.throttled.rate": "0"})
    everywhere = {"leader.replication.throttled.replicas": "*"}
    ClusterChanges(cluster.client).alter_topic_configs("events", everywhere)
    throttle = cluster._broker(topic[0]).body.parts.throttles.leader
    until(lambda: throttle.is_active and throttle.names(E0), "the leader's throttle")
    return path, new


def test_a_plan_moves_partitions_off_a_broker_and_its_execution_says_when_it_is_done(
    administer, cluster, tmp_path
):
    cluster.create_topic("events", partitions=4, replication_factor=2)
    path = tmp_path / "plan.json"
    ran = administer(f"reassign plan --topics events --brokers 1,2,3 -o {path}")
    assert ran.status == DONE
    assert "2 replicas are copied to another broker" in ran.out
    assert f"sparklog reassign execute --plan {path} --bootstrap-server 127.0.0.1" in ran.out
    planned = read_plan(path)
    assert {broker for replicas in planned.values() for broker in replicas} == {1, 2, 3}
    assert administer(f"reassign verify --plan {path}").status == FAILED
    ran = administer(f"reassign execute --plan {path}")
    assert (ran.status, ran.out.splitlines()[-1]) == (DONE, "4 done")
    assert {one.partition: one.replicas for one in cluster.partitions("events")} == {
        one.partition: replicas for one, replicas in planned.items()
    }
    ran = administer(f"reassign verify --plan {path}")
    assert (ran.status, ran.out.splitlines()[-1]) == (DONE, "4 done")


def test_a_plan_as_json_is_a_plan_that_can_be_executed(administer, cluster, tmp_path):
    cluster.create_topic("events", partitions=3, replication_factor=1)
    ran = administer("reassign plan --replication-factor 2 --json")
    told = json.loads(ran.out)
    assert all(len(one["adding_replicas"]) == 1 for one in told["partitions"])
    (tmp_path / "plan.json").write_text(ran.out)
    assert administer(f"reassign execute --plan {tmp_path / 'plan.json'} --json").status == DONE
    assert [len(one.replicas) for one in cluster.partitions("events")] == [2, 2, 2]


def test_what_is_even_already_is_left_alone(administer, cluster):
    cluster.create_topic("events", partitions=4, replication_factor=1)
    ran = administer("reassign plan")
    assert ran.out.count("as it is") == 4
    assert ran.out.endswith(
        "0 of 4 partitions change: 0 replicas are copied to another broker, 0 preferred leaders change\n"
    )


def test_a_throttle_is_an_operation_and_ends_with_the_moves(administer, cluster, topic, plan):
    new = others(*topic)[0]
    ran = administer(f"reassign execute --plan {plan(('events', 0, topic[0], new))} --throttle 1000000")
    assert ran.status == DONE
    assert "limits what each broker sends and fetches for these moves to 1000000 bytes a second" in ran.err
    until(lambda: operations(administer) == [("reassign", "done", 1, 1)], "the end of the operation")
    assert cluster.admin.topic_configs(["events"]) == {"events": {}}
    throttle = cluster._broker(topic[0]).body.parts.throttles.leader
    until(lambda: not throttle.names(E0), "all brokers to be notified")


def operations(administer):
    listed = json.loads(administer("brokers operations --json").out)["operations"]
    return [(one["kind"], one["state"], one["done"], one["total"]) for one in listed]


def test_a_move_under_way_is_watched_verified_and_taken_back(administer, cluster, topic, plan, monkeypatch):
    monkeypatch.setattr(executing, "REPORT_EVERY_S", 0.0)
    cluster.produce("events", ["x" * 1_000] * 10)
    path, new = stuck(cluster, topic, plan)
    assert administer(f"reassign execute --plan {path} --no-wait").status == DONE
    ran = administer(f"reassign verify --plan {path}")
    assert ran.status == FAILED
    assert "in progress" in ran.out
    assert f"brokers [{new}] are not in sync yet" in ran.out
    (told,) = json.loads(administer("reassign verify --json").out)["partitions"]
    assert (told["state"], told["adding_replicas"]) == ("in progress", [new])
    elsewhere = plan(("events", 0, *others(topic[0], new)))
    assert "on its way to" in administer(f"reassign verify --plan {elsewhere}").out
    ran = administer("reassign cancel")
    assert ran.status == DONE
    assert ran.out.startswith(f"events-0: cancelled; the copies on brokers [{new}] go, {sorted(topic)} stay")
    until(lambda: cluster.partitions("events")[0].replicas == topic, "brokers to know the old replicas")
    assert list(cluster.admin.topic_configs(["events"])["events"]) == [
        "leader.replication.throttled.replicas"
    ]


def test_a_throttle_needs_no_command_that_ends_it_and_other_tools_keep_theirs(
    administer, cluster, topic, plan
):
    cluster.produce("events", ["x" * 1_000] * 10)
    path, _ = stuck(cluster, topic, plan)
    assert administer(f"reassign execute --plan {path} --throttle 1000000 --no-wait").status == DONE
    assert operations(administer) == [("reassign", "running", 0, 1)]
    rate = {"leader.replication.throttled.rate": None}
    ClusterChanges(cluster.client).alter_broker_configs(topic[0], rate)
    until(lambda: operations(administer) == [("reassign", "done", 1, 1)], "the end of the operation")
    assert list(cluster.admin.topic_configs(["events"])["events"]) == [
        "leader.replication.throttled.replicas"
    ]


def test_an_interrupt_leaves_the_moves_running_and_says_so(administer, cluster, topic, plan, monkeypatch):
    monkeypatch.setattr(executing, "REPORT_EVERY_S", 0.0)
    cluster.produce("events", ["x" * 1_000] * 10)
    path, _ = stuck(cluster, topic, plan)
    told = []
    monkeypatch.setattr(executing, "say", lambda text: told.append(text) or progress.say(text))
    main_thread = threading.main_thread().ident

    def interrupt():
        while not any("not in sync yet, of events-0" in text for text in told):
            time.sleep(0.02)
        signal.pthread_kill(main_thread, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    ran = administer(f"reassign execute --plan {path}")
    thread.join()
    assert ran.status == FAILED
    assert "0 of 1 partitions are moved after" in ran.err
    assert "interrupted; the moves go on" in ran.err
    assert f"sparklog reassign cancel --plan {path} --bootstrap-server" in ran.err
    assert ClusterChanges(cluster.client).ongoing_moves().keys() == {E0}


def test_a_move_that_is_refused_is_told_and_the_others_go_on(administer, cluster, plan):
    cluster.create_topic("events", partitions=2, replication_factor=1)
    first, second = (one.replicas[0] for one in cluster.partitions("events"))
    cluster.kill(dead := others(first, second)[0])
    target = others(second, dead)[0]
    ran = administer(f"reassign execute --plan {plan(('events', 0, dead), ('events', 1, target))}")
    assert ran.status == FAILED
    assert f"events-0 is not moved: Replica assignment has brokers that are not alive: [{dead}]" in ran.err
    assert [line.split()[5] for line in ran.out.splitlines()[1:3]] == ["not", "done"]


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("plan --brokers 1,9", WRONG_USAGE, "--brokers 9: no such broker is alive; alive are [1, 2, 3, 4]"),
        ("plan --brokers 1", WRONG_USAGE, "events-0 cannot have 2 replicas on 1 brokers [1]"),
        ("plan --topics event", FAILED, "there is no topic 'event'; did you mean events?"),
        ("plan --brokers one", WRONG_USAGE, "'one' is not a whole number"),
        ("execute", WRONG_USAGE, "required: --plan"),
        ("execute --plan /nowhere/plan.json", FAILED, "/nowhere/plan.json cannot be read as a plan"),
        ("execute --plan X --throttle 0", WRONG_USAGE, "'0' is not a whole number from 1 on"),
    ],
)
def test_what_cannot_be_is_said_with_the_value_and_the_remedy(administer, topic, command, status, words):
    ran = administer(f"reassign {command}")
    assert (ran.status, ran.out) == (status, "")
    assert words in ran.err


@pytest.mark.parametrize(
    ("name", "number", "words"),
    [("audit", 0, "names 'audit', but there is no such topic"), ("events", 7, "no such partition")],
)
def test_a_plan_for_what_is_not_there_moves_nothing(administer, topic, plan, name, number, words):
    ran = administer(f"reassign execute --plan {plan((name, number, 1, 2))}")
    assert (ran.status, ran.out) == (FAILED, "")
    assert words in ran.err
    assert "nothing was moved" in ran.err


# -- the file


def test_plans_are_written_as_kafka_s_tool_writes_them_and_read_again():
    wanted = {TopicPartition("b", 0): (2, 1), TopicPartition("a", 1): (3,)}
    text = plan_text(wanted)
    assert json.loads(text) == {
        "version": 1,
        "partitions": [
            {"topic": "a", "partition": 1, "replicas": [3]},
            {"topic": "b", "partition": 0, "replicas": [2, 1]},
        ],
    }
    assert parse_plan(json.loads(text), "here") == wanted


def entry(**changed):
    return {"topic": "t", "partition": 0, "replicas": [1, 2], **changed}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], 'has no list "partitions"'),
        ({"partitions": []}, "a plan without partitions"),
        ({"version": 2, "partitions": [entry()]}, "version 2"),
        ({"partitions": ["t-0"]}, "not an object"),
        ({"partitions": [entry(topic="a b")]}, "not the name of a topic"),
        ({"partitions": [entry(partition=-1)]}, "not a number from 0 on"),
        ({"partitions": [entry(partition=True)]}, "not a number from 0 on"),
        ({"partitions": [entry(replicas=[])]}, "not a list of broker ids"),
        ({"partitions": [entry(replicas=["1"])]}, "not a list of broker ids"),
        ({"partitions": [entry(replicas=[1, 1])]}, "names a broker twice"),
        ({"partitions": [entry(log_dirs=["/data", "any"])]}, "chooses the log directory itself"),
        ({"partitions": [entry(), entry()]}, "t-0 more than once"),
    ],
)
def test_a_plan_that_cannot_be_says_where_it_is_wrong(content, words):
    with pytest.raises(SparklogError, match=words):
        parse_plan(content, "plan.json")


def test_log_directories_that_are_left_to_the_broker_are_fine():
    assert parse_plan({"partitions": [entry(log_dirs=["any", "any"])]}, "x") == {
        TopicPartition("t", 0): (1, 2)
    }
