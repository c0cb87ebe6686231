"""Records as JSON: what comes out goes in again, byte for byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.cli.logs.record_text.record import Record
from sparklog.cli.logs.record_text.record_json import BadRecord, decode, encode
from sparklog.model.ids import TopicPartition

TP = TopicPartition("t", 3)
DATA = st.none() | st.binary(max_size=20) | st.text(max_size=20).map(str.encode)
NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
RECORDS = st.builds(
    Record,
    value=DATA,
    key=DATA,
    headers=st.lists(st.tuples(NAME, DATA), max_size=3).map(tuple),
    partition=st.just(3),
    timestamp_ms=st.none() | st.integers(-(2**63), 2**63 - 1),
)


@given(RECORDS)
def test_every_record_comes_back_as_it_went(record: Record) -> None:
    line = encode(TP, 7, record)
    assert b"\n" not in line
    assert decode(line) == record


def test_a_record_has_kafka_s_parts_and_bytes_that_are_no_text_are_base64() -> None:
    record = Record(b"v\xc3\xa4", b"\xff\x00", (("trace", b"1"), ("none", None)), timestamp_ms=12)
    assert json.loads(encode(TP, 7, record)) == {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp_ms": 12,
        "key": {"base64": "/wA="},
        "value": "vä",
        "headers": [{"key": "trace", "value": "1"}, {"key": "none", "value": None}],
    }


def test_all_but_the_value_may_be_left_out() -> None:
    assert decode(b'{"value": "v"}') == Record(b"v")
    assert decode(b'{"value": null, "headers": null, "key": null}') == Record(None)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"v", "is no JSON: "),
        (b"\xff", "is no JSON: "),
        (b"[" * 100_000, "is no JSON: "),
        (b'["v"]', "is no JSON object"),
        (b'{"key": "k"}', "has no value; "),
        (b'{"vlaue": "v"}', "has 'vlaue', which is no part of a record; did you mean value?"),
        (b'{"value": 1}', 'value=1 is neither a string, nor {"base64": "..."}, nor null'),
        (b'{"value": {"base64": "v", "x": 1}}', "is neither a string"),
        (b'{"value": {"base64": "?"}}', "is no base64"),
        (b'{"value": "\\ud800"}', "has half of a character"),
        (b'{"value": "v", "partition": -1}', "partition=-1 is no whole number from 0 to 2147483647"),
        (b'{"value": "v", "partition": true}', "partition=true is no whole number"),
        (b'{"value": "v", "timestamp_ms": 1.5}', "timestamp_ms=1.5 is no whole number"),
        (b'{"value": "v", "headers": {"a": "b"}}', 'headers={"a": "b"} is no list'),
        (b'{"value": "v", "headers": ["a"]}', 'the header "a" is not of the form'),
        (b'{"value": "v", "headers": [{"key": "a", "vale": "b"}]}', "did you mean value?"),
        (b'{"value": "v", "headers": [{"key": "a", "value": 1}]}', "the header 'a'=1 is neither a string"),
    ],
)
def test_what_is_no_record_is_refused_with_what_is_wrong(line: bytes, complaint: str) -> None:
    with pytest.raises(BadRecord) as refused:
        decode(line)
    assert complaint in str(refused.value)
