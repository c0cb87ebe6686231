"""Offsets as JSON, exactly in the form of Spark's Kafka connector."""

import json

import pytest

from sparklog.model.errors import ConfigError, SparklogError
from sparklog.model.ids import TopicId, TopicPartition
from sparklog_datasource.reads.offset_json import (
    initial_of_json,
    offsets_of_json,
    offsets_to_json,
    parse_assignment,
    parse_offsets,
    parse_timestamps,
    topic_ids_of_json,
)

A0, A2, A10, B0 = (TopicPartition(*tp) for tp in [("a", 0), ("a", 2), ("a", 10), ("b", 0)])


def test_offsets_are_written_sorted_by_topic_and_number() -> None:
    written = json.dumps(offsets_to_json({B0: 1, A10: 2, A2: 3, A0: 4}), separators=(",", ":"))
    assert written == '{"a":{"0":4,"2":3,"10":2},"b":{"0":1}}'


def test_offsets_come_back_as_they_were() -> None:
    offsets = {A0: 23, B0: 2**62}
    assert offsets_of_json(json.loads(json.dumps(offsets_to_json(offsets)))) == offsets
    assert initial_of_json(offsets_to_json(offsets)) is None


def test_the_end_of_a_first_micro_batch_carries_the_initial_offsets() -> None:
    end = json.loads(json.dumps(offsets_to_json({A0: 9}, initial={A0: 5})))
    assert end == {"$sparklog": {"version": 2, "initial": {"a": {"0": 5}}}, "a": {"0": 9}}
    assert offsets_of_json(end) == {A0: 9}
    assert initial_of_json(end) == {A0: 5}
    assert topic_ids_of_json(end) == {}


def test_offsets_carry_the_ids_of_their_topics() -> None:
    ids = {"b": TopicId(int=2), "a": TopicId(int=1), "unread": TopicId(int=3)}
    written = json.dumps(offsets_to_json({B0: 1, A0: 9}, topic_ids=ids))
    assert written == (
        '{"$sparklog": {"version": 2, "topics": {"a": "00000000-0000-0000-0000-000000000001", '
        '"b": "00000000-0000-0000-0000-000000000002"}}, "a": {"0": 9}, "b": {"0": 1}}'
    )
    end = json.loads(written)
    assert topic_ids_of_json(end) == {"a": ids["a"], "b": ids["b"]}
    assert (offsets_of_json(end), initial_of_json(end)) == ({A0: 9, B0: 1}, None)


def test_a_note_of_an_earlier_release_is_read() -> None:
    end = {"$sparklog": {"version": 1, "initial": {"a": {"0": 5}}}, "a": {"0": 9}}
    assert (offsets_of_json(end), initial_of_json(end)) == ({A0: 9}, {A0: 5})
    assert topic_ids_of_json(end) == {}


def test_a_note_of_a_newer_release_is_refused() -> None:
    end = {"$sparklog": {"version": 3, "topics": {}}, "a": {"0": 9}}
    with pytest.raises(SparklogError, match=r"version 3.*reads versions 1 to 2"):
        offsets_of_json(end)


def test_an_offset_copied_from_a_querys_progress_can_be_an_option() -> None:
    text = json.dumps(offsets_to_json({A0: 9}, initial={A0: 5}))
    assert parse_offsets("startingOffsets", text) == {A0: 9}


def test_offsets_of_an_option_may_be_the_sentinels() -> None:
    assert parse_offsets("startingOffsets", '{"a":{"0":-2,"2":-1}}') == {A0: -2, A2: -1}


@pytest.mark.parametrize(
    "text", ["", "earlyish", "[]", '{"a":[0]}', '{"a":{"x":1}}', '{"a":{"0":"1"}}', '{"a":{"0":1.5}}',
             '{"a":{"0":true}}', '{"a":"earliest"}']
)  # fmt: skip
def test_malformed_offsets_are_refused_with_a_sample(text: str) -> None:
    with pytest.raises(ConfigError, match=r'option startingOffsets.*\{"topicA":\{"0":23'):
        parse_offsets("startingOffsets", text)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"a":{"0":1},"a":{"1":2}}', "a"),
        ('{"a":{"0":1,"0":2}}', "0"),
        ('{"a":{"0":1,"00":2}}', "00"),
        ('{"a":{"0":1},"b":{"1":2,"2":1,"1":2}}', "1"),
    ],
)
def test_what_is_named_twice_is_refused_rather_than_merged(text: str, key: str) -> None:
    for parse in (parse_offsets, parse_timestamps):
        with pytest.raises(ConfigError, match=f"option o: '{key}' is named twice"):
            parse("o", text)
    with pytest.raises(ConfigError, match="option o: 'a' is named twice"):
        parse_assignment("o", '{"a":[0],"a":[1]}')


def test_an_offset_below_the_sentinels_is_refused() -> None:
    with pytest.raises(ConfigError, match="a-0 has offset -3"):
        parse_offsets("endingOffsets", '{"a":{"0":-3}}')


def test_timestamps_are_read_per_partition() -> None:
    assert parse_timestamps("startingOffsetsByTimestamp", '{"a":{"0":1700000000000}}') == {A0: 1700000000000}


def test_assignments_are_sorted_and_without_repetition() -> None:
    assert parse_assignment("assign", '{"b":[0],"a":[2,0,2]}') == [A0, A2, B0]


@pytest.mark.parametrize("text", ["x", '{"a":1}', '{"a":["0"]}', '{"a":[-1]}'])
def test_malformed_assignments_are_refused_with_a_sample(text: str) -> None:
    with pytest.raises(ConfigError, match=r'option assign.*\{"topicA":\[0,1\]'):
        parse_assignment("assign", text)
