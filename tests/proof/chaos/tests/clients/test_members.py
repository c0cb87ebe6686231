"""What members of the group commit and find, and that each gets a share."""

import json
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from chaos.access import Access
from chaos.clients.client_parts import Settings
from chaos.clients.confluent_client import ends_the_client
from chaos.clients.kafka_python_member import EveryMember
from chaos.clients.member_parts import Membership
from histories import Writer

PLACE = "t", 0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "history.jsonl"


@pytest.fixture
def ours(path):
    settings = Settings("static-member", "confluent", "m/1", Access(""), {"t": 1}, "", 1)
    with Writer(path) as writer:
        yield Membership(settings, writer)


def _lines(path, what):
    return [line for line in map(json.loads, path.read_text().splitlines()) if line["f"] == what]


def test_a_member_commits_where_it_stands_once_it_has_moved(ours, path):
    ours.own(PLACE, 3)
    assert ours.due(now=True) == []
    ours.take({PLACE: [(3, "a", 0), (4, "b", 0)]})
    (due,) = ours.due(now=True)
    assert (due.place, due.offset, due.name) == (PLACE, 5, "5 by m/1, 0;")
    ours.done(due, None)
    assert ours.due(now=True) == []
    assert [line["type"] for line in _lines(path, "commit")] == ["invoke", "ok"]


def test_records_of_a_partition_that_is_not_owned_are_not_written_down(ours, path):
    ours.own(PLACE, 3)
    ours.disown([PLACE])
    ours.take({PLACE: [(3, "a", 0)]})
    assert _lines(path, "poll") == []


@pytest.mark.parametrize(
    ("offset", "metadata", "value"),
    [
        (5, "5 by m/0, 7;", "5 by m/0, 7;"),
        (5, "5 by m/0, 7;\0", "5 by m/0, 7;"),
        (5, "5 by m/0, 7;09", "5 by m/0, 7;"),
        (4, "5 by m/0, 7;", "4 with metadata '5 by m/0, 7;'"),
        (4, "", "4 with metadata ''"),
        (-1, None, None),
    ],
)
def test_a_found_offset_is_known_by_its_metadata_if_that_names_it(ours, path, offset, metadata, value):
    ours.found(ours.ask(PLACE), offset, metadata)
    assert _lines(path, "committed")[-1].get("value") == value


def test_a_static_member_is_known_by_its_instance_in_all_its_lives(ours, path):
    ours.assigned(4, "member id", [PLACE])
    ours.assigned(5, "member id", [])
    (line,) = _lines(path, "assigned")
    assert (line["member"], line["generation"], line["shares"]) == ("m", 4, ["t/0"])


def test_no_member_is_forgotten_wherever_static_ones_stand():
    members = [
        SimpleNamespace(member_id=f"id-{number}", group_instance_id=instance, metadata=_subscription())
        for number, instance in enumerate(("a", None, "b", None))
    ]
    cluster = SimpleNamespace(partitions_for_topic=lambda topic: range(4))
    given = EveryMember.assign(cluster, members)
    assert {name: len(share.assigned_partitions) for name, share in given.items()} == dict.fromkeys(
        ("id-0", "id-1", "id-2", "id-3"), 1
    )


def _subscription():
    return SimpleNamespace(topics=["t"])


def test_a_member_that_was_fenced_is_at_its_end_though_the_polled_error_lacks_the_flag():
    polled = KafkaError(KafkaError._FATAL, "Static consumer fenced by other consumer")
    assert not polled.fatal()
    assert ends_the_client(polled)
    assert ends_the_client(KafkaError(KafkaError.FENCED_INSTANCE_ID, fatal=True))
    assert not ends_the_client(KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS))
