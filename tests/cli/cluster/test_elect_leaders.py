"""Leaders elected on demand: preferred ones without loss, any at all where nobody leads."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.client.admin import Admin
from sparklog.client.offsets import RemoteShare
from tests.waiting import until

pytestmark = pytest.mark.integration

WAIT_S = 30


@pytest.fixture
def topic(cluster):
    """Led by somebody else than its preferred replica; (preferred, leader)."""
    cluster.create_topic("events", replication_factor=2)
    preferred, other = cluster.partitions("events")[0].replicas
    cluster.kill(preferred)
    cluster.wait_for_leader("events", other_than=preferred)
    cluster.revive(preferred)
    cluster.wait_for_isr("events", 2)
    return preferred, other


def test_leadership_goes_back_to_the_preferred_replica(administer, topic):
    ran = administer("elect-leaders --topic events")
    assert ran.status == DONE
    assert ran.out.splitlines()[1].split() == ["events", "0", str(topic[0]), "elected"]
    again = administer("elect-leaders --preferred --topic events --partition 0")
    assert (again.status, again.out.splitlines()[1].split()[3:]) == (DONE, ["not", "needed"])


def test_all_partitions_tell_only_of_those_that_changed(administer, topic):
    (told,) = json.loads(administer("elect-leaders --all --json").out)["partitions"]
    assert told == {
        "topic": "events",
        "partition": 0,
        "result": "elected",
        "leader": topic[0],
        "error": None,
        "message": None,
    }
    assert administer("elect-leaders --all").out == "every partition is led by its preferred replica\n"


def test_a_preferred_replica_that_is_away_is_refused(administer, cluster, topic):
    cluster.kill(topic[0])
    ran = administer("elect-leaders --topic events")
    assert ran.status == FAILED
    assert f"refused: PREFERRED_LEADER_NOT_AVAILABLE: The preferred leader, broker {topic[0]}," in ran.out


def test_an_unclean_election_says_first_what_may_be_lost_and_ends_the_silence(administer, cluster):
    cluster.create_topic("events", replication_factor=2)
    leader, follower = cluster.partitions("events")[0].replicas
    cluster.kill(follower)
    cluster.produce("events", ["only the leader has this"])
    cluster.kill(leader)
    cluster.revive(follower)
    until(lambda: [one.leader for one in cluster.partitions("events")] == [-1])
    ran = administer("elect-leaders --unclean --topic events")
    assert ran.status == DONE
    assert f"events-0: in sync are [{leader}], alive [{follower}]" in ran.err
    assert f"records that only [{leader}] have will be lost" in ran.err
    assert ran.out.splitlines()[1].split() == ["events", "0", str(follower), "elected"]
    assert cluster.consume("events") == []
    epoch = cluster.partitions("events")[0].leader_epoch
    words = f"elections without a proven log: events-0 from offset 0 on (leader epoch {epoch})"
    assert words in administer("status").out
    assert words in administer("topics describe events").out
    told = json.loads(administer("status --json").out)
    assert told["lossy_partitions"] == {"events-0": epoch}
    loss = {"topic": "events", "partition": 0, "leader_epoch": epoch, "from_offset": 0}
    assert told["losses"] == [loss]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "which partitions? give --topic T, or --all"),
        ("--unclean", "--unclean may lose records: say of which topic, with --topic T"),
        ("--unclean --all", "--unclean may lose records: say of which topic, with --topic T"),
        ("--without-store --topic t", "--without-store may lose records: give it together with --unclean"),
        ("--topic t --all", "both --topic t and --all are given; choose one"),
        ("--partition 1 --all", "--partition 1 of which topic? give --topic T"),
        ("--preferred --unclean --topic t", "not allowed with argument --preferred"),
    ],
)
def test_options_that_make_no_sense_are_wrong_usage(administer, options, words):
    ran = administer(f"elect-leaders {options}")
    assert (ran.status, ran.out) == (WRONG_USAGE, "")
    assert words in ran.err


def test_a_partition_that_is_not_there_is_named(administer, cluster):
    cluster.create_topic("events")
    ran = administer("elect-leaders --topic events --partition 4")
    assert (ran.status, ran.err) == (
        FAILED, "sparklog: --partition 4: topic 'events' has only partition 0\n",
    )  # fmt: skip


def test_giving_up_a_store_names_the_offsets_first(administer, cluster, monkeypatch):
    cluster.create_topic("events", replication_factor=1)
    share = RemoteShare(0, 720, 9_000, trouble="the store is away")
    described = [replace(one, remote=share) for one in cluster.partitions("events")]
    monkeypatch.setattr(Admin, "describe_topics", lambda *_: [SimpleNamespace(partitions=described)])
    ran = administer("elect-leaders --unclean --without-store --topic events")
    assert "events-0: of offsets 0 to 719 in the remote store beyond the leader's log is given up" in ran.err
    assert "(the store is away)" in ran.err
    assert ran.out.splitlines()[1].split()[-2:] == ["not", "needed"], "nothing was lost here"
