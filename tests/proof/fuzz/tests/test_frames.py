"""Which frames are drawn."""

import random

import pytest

from fuzz.answers import Asked
from fuzz.frames import DAMAGES, PAIRS, draw_request
from fuzz.surroundings import KEPT_GROUP, KEPT_TOPIC, Surroundings, may_name_kept_group, may_name_kept_topic
from sparklog.core.apis.api_table import APIS
from sparklog.wire.codec import decode_request

NOWHERE = Surroundings({})
SEED = 5


def drawn(count):
    return [draw_request(SEED, number, NOWHERE) for number in range(count)]


def test_every_api_has_its_turn_in_every_version_before_any_has_its_second():
    for turn in range(2):
        requests = [draw_request(SEED, turn * len(PAIRS) + n, NOWHERE) for n in range(len(PAIRS))]
        assert sorted((one.api_key, one.version) for one in requests) == sorted(PAIRS)


def test_the_same_seed_and_number_draw_the_same_frame_and_other_seeds_do_not():
    first = drawn(300)
    assert drawn(300) == first
    assert [draw_request(SEED + 1, n, NOWHERE).octets for n in range(300)] != [one.octets for one in first]


def test_right_requests_are_read_by_the_shipped_codec():
    right = [one for one in drawn(2_000) if one.how == "right"]
    assert len(right) > 200
    for one in right:
        header = decode_request(one.octets[4:]).header
        assert (header.api_key, header.api_version) == (one.api_key, one.version)
        assert Asked(one).tree is not None


def test_every_damage_is_drawn_and_changes_the_frame():
    hows = {one.how for one in drawn(2_000)}
    assert hows == {"right", "odd", *DAMAGES}


def test_only_requests_that_read_name_what_must_stay():
    named = {
        (one.api_key, kept)
        for one in drawn(6_000)
        for kept in (KEPT_TOPIC, KEPT_GROUP)
        if kept.encode() in one.octets and one.how not in ("crossed", "flipped")
    }
    assert named
    for api_key, kept in named:
        may = may_name_kept_topic if kept == KEPT_TOPIC else may_name_kept_group
        assert may(api_key) or (kept == KEPT_TOPIC and may_name_kept_group(api_key)), APIS[api_key].name


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("Fetch", True),
        ("ListOffsets", True),
        ("Metadata", True),
        ("DescribeConfigs", True),
        ("Produce", False),
        ("DeleteRecords", False),
        ("DeleteTopics", False),
        ("AlterConfigs", False),
        ("StopReplica", False),
    ],
)
def test_an_api_may_name_the_kept_topic_if_its_rights_say_that_it_reads(name, may):
    (api_key,) = (key for key, api in APIS.items() if api.name == name)
    assert may_name_kept_topic(api_key) is may


def test_a_crossed_request_keeps_its_hands_off_even_if_its_own_api_only_reads():
    crossed = [one for one in drawn(6_000) if one.how == "crossed"]
    assert len(crossed) > 100
    assert not [one for one in crossed if KEPT_TOPIC.encode() in one.octets]


def test_the_dice_of_a_request_are_its_own():
    random.seed(1)
    before = draw_request(SEED, 77, NOWHERE)
    random.seed(2)
    assert draw_request(SEED, 77, NOWHERE) == before
