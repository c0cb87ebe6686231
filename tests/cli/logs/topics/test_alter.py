"""More partitions and other settings for a topic that exists: all of it or nothing, and said."""

import json

import pytest

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def topic(cluster):
    cluster.create_topic("events", partitions=2, replication_factor=2, configs={"retention.ms": "5"})


def test_partitions_and_settings_change_in_one_call_that_says_what_was_before(administer, cluster):
    ran = administer(
        "topics alter events --partitions 4 --config segment.ms=7 --delete-config retention.ms --config a=1"
    )
    assert (ran.status, ran.out) == (WRONG_USAGE, "")
    ran = administer("topics alter events --partitions 4 --config segment.ms=7 --delete-config retention.ms")
    assert ran.status == DONE
    assert ran.out.splitlines() == [
        "topic 'events': 2 -> 4 partitions",
        "topic 'events': segment.ms: 604800000 (default) -> 7 (topic)",
        "topic 'events': retention.ms: 5 (topic) -> (default)",
    ]
    assert "in partitions 0 to 1 stay there; new ones may not" in ran.err
    assert len(cluster.partitions("events")) == 4


def test_of_a_lone_partition_the_note_has_no_range(administer, cluster):
    cluster.create_topic("lone", partitions=1)
    ran = administer("topics alter lone --partitions 2")
    assert "in partition 0 stay there; new ones may not" in ran.err


def test_as_json_it_tells_the_same(administer):
    told = json.loads(administer("topics alter events --partitions 3 --config retention.ms=6 --json").out)
    change = {"name": "retention.ms", "before": "5", "after": "6"}
    assert told == {
        "topics": [
            {"name": "events", "partition_count": {"before": 2, "after": 3}, "configs": [change]}
        ]
    }  # fmt: skip


def test_what_is_so_already_is_no_mistake(administer):
    ran = administer("topics alter events --partitions 2 --config retention.ms=5")
    assert (ran.status, ran.out) == (DONE, "topic 'events': nothing to change, it is so already\n")


def test_fewer_partitions_are_refused_and_the_settings_stay_too(administer, cluster):
    ran = administer("topics alter events --partitions 1 --config retention.ms=6")
    assert ran.status == FAILED
    assert "--partitions 1: topic 'events' has 2, and cannot have fewer" in ran.err
    assert cluster.admin.topic_configs(["events"]) == {"events": {"retention.ms": "5"}}


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        ("events", WRONG_USAGE, "NAME=VALUE, --delete-config NAME or a change of columns"),
        ("events --partitions 0", WRONG_USAGE, "'0' is not a whole number from 1 on"),
        ("events --config retenton.ms=1", WRONG_USAGE, "did you mean retention.ms?"),
        ("events --config retention.ms=x", WRONG_USAGE, "must be a whole number"),
        ("events --delete-config retenton.ms", WRONG_USAGE, "did you mean retention.ms?"),
        ("events -c segment.ms=1 --delete-config segment.ms", WRONG_USAGE, "both set and deleted"),
        ("event --partitions 5", FAILED, "there is no topic 'event'; did you mean events?"),
    ],
)
def test_what_cannot_be_is_said_with_the_value_and_the_remedy(administer, options, status, words):
    ran = administer(f"topics alter {options}")
    assert (ran.status, ran.out) == (status, "")
    assert words in ran.err
