"""Settings, with where they come from, seen and changed while four brokers run."""

import json
import time

import pytest

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE

pytestmark = pytest.mark.integration

WAIT_S = 30


@pytest.fixture
def shown(administer):
    """The rows of a table, as soon as they are what is expected: brokers hear of changes in a moment."""

    def wait(command, *expected):
        deadline = time.monotonic() + WAIT_S
        while True:
            rows = [line.split("  ") for line in administer(command).out.splitlines()[1:]]
            found = [tuple(cell.strip() for cell in row if cell.strip()) for row in rows]
            if set(expected) <= set(found):
                return found
            assert time.monotonic() < deadline, found
            time.sleep(0.02)

    return wait


def test_a_topic_shows_what_differs_from_the_default_and_where_it_comes_from(administer, cluster, shown):
    cluster.create_topic("events", configs={"retention.ms": "5"})
    administer("configs alter --all-brokers --set message.max.bytes=100000")
    found = shown(
        "configs describe --topic events",
        ("max.message.bytes", "100000", "dynamic, all brokers", "while it runs"),
        ("retention.ms", "5", "topic", "while it runs"),
    )
    assert len(found) == 2
    assert len(shown("configs describe --topic events --all")) > 10


def test_a_broker_s_own_value_goes_over_that_of_all_and_gives_way_to_it_when_deleted(administer, shown):
    assert administer("configs alter --all-brokers --set log.retention.ms=5").status == DONE
    shown("configs describe --broker 2", ("log.retention.ms", "5", "dynamic, all brokers", "while it runs"))
    ran = administer("configs alter --broker 2 --set log.retention.ms=6")
    assert ran.out == ("broker 2: log.retention.ms: 5 (dynamic, all brokers) -> 6 (dynamic, this broker)\n")
    shown(
        "configs describe --all-brokers",
        ("log.retention.ms", "5", "dynamic, all brokers", "while it runs", "1,3,4"),
        ("log.retention.ms", "6", "dynamic, this broker", "while it runs", "2"),
    )
    ran = administer("configs alter --broker 2 --delete log.retention.ms")
    assert ran.out.endswith("6 (dynamic, this broker) -> 5 (dynamic, all brokers)\n")


def test_as_json_every_level_is_there(administer, cluster):
    cluster.create_topic("events", configs={"retention.ms": "5"})
    (told,) = json.loads(administer("configs describe --topic events --json").out)["configs"]
    assert told == {
        "resource_type": "topic",
        "resource_name": "events",
        "name": "retention.ms",
        "value": "5",
        "config_source": "topic",
        "read_only": False,
        "synonyms": [
            {"name": "retention.ms", "value": "5", "source": "topic"},
        ],
    }
    changed = json.loads(administer("configs alter --topic events --set retention.ms=6 --json").out)
    assert changed == {"configs": [{"name": "retention.ms", "before": "5", "after": "6"}]}


def test_nothing_but_defaults_is_said_in_words(administer, cluster):
    cluster.create_topic("plain")
    ran = administer("configs describe --topic plain")
    assert ran.out == "topic 'plain' has nothing but defaults; --all shows them\n"
    assert json.loads(administer("configs describe --topic plain --json").out) == {"configs": []}


def test_what_is_read_at_start_is_refused_with_the_remedy(administer):
    ran = administer("configs alter --broker 1 --set num.io.threads=3")
    assert ran.status == FAILED
    assert "give them to `sparklog start` with -c, and restart" in ran.err


def test_a_broker_that_is_down_may_be_given_settings_but_tells_none(administer, cluster):
    cluster.kill(3)
    ran = administer("configs alter --broker 3 --set log.retention.ms=6")
    assert ran.out == "broker 3: log.retention.ms: (not set) -> 6 (dynamic, this broker)\n"
    ran = administer("configs describe --broker 9")
    assert (ran.status, ran.out) == (FAILED, "")
    assert "broker 9 is not alive" in ran.err


def test_a_broker_that_never_was_is_given_no_settings_but_the_ids_that_there_are(administer, cluster):
    cluster.kill(3)
    ran = administer("configs alter --broker 9 --set log.retention.ms=6")
    assert (ran.status, ran.out) == (FAILED, "")
    assert "no broker with id 9 has ever registered; there are 1, 2, 3, 4" in ran.err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("describe", "one of the arguments --topic --broker --all-brokers is required"),
        ("describe --topic t --broker 1", "not allowed with argument"),
        ("describe --broker one", "'one' is not a whole number"),
        ("alter --topic t", "nothing to change; give --set NAME=VALUE, or --delete NAME"),
        ("alter --topic t --set retention.ms", "is not of the form name=value"),
        ("alter --broker 1 --set log.retenton.ms=4", "did you mean log.retention.ms?"),
        ("alter --topic t --set log.retention.ms=4", "did you mean retention.ms?"),
        ("alter --topic t --delete log.roll.hours", "did you mean segment.ms?"),
        ("alter --broker 1 --delete retention.ms", "did you mean log.retention.ms?"),
    ],
)
def test_options_that_make_no_sense_are_wrong_usage(administer, command, words):
    ran = administer(f"configs {command}")
    assert (ran.status, ran.out) == (WRONG_USAGE, "")
    assert words in ran.err
