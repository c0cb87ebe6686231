"""Records as JSON, and the text that is looked for in them."""

import base64

import pytest

from sparklog.web.records.shown_record import Part, ShownRecord, text_of


def part(data: bytes) -> Part:
    return Part(data, len(data))


RECORD = ShownRecord(
    partition=3,
    offset=7,
    timestamp_ms=1_700_000_000_000,
    key=part(b"Order-17"),
    value=part("<script>alert('straße')</script>".encode()),
    headers=(("trace", part(b"\xff\x00needle")), ("empty", None)),
)


@pytest.mark.parametrize("words", ["order-17", "ORDER", "straße", "<script>", "needle", "trace", "TRACE", ""])
def test_a_text_is_found_in_key_value_and_headers(words: str) -> None:
    assert text_of(words).is_in(RECORD)


@pytest.mark.parametrize("words", ["order-18", "STRASSE", "need le", "\ud800"])
def test_what_is_not_there_is_not_found(words: str) -> None:
    assert not text_of(words).is_in(RECORD)


def test_null_differs_from_empty_and_each_part_keeps_its_size_when_it_is_cut() -> None:
    record = ShownRecord(partition=0, offset=0, timestamp_ms=-1, key=None, value=part(b"")).as_json("t")
    assert (record["key"], record["value"], record["timestamp_ms"]) == (None, {"size": 0, "base64": ""}, None)
    cut = RECORD.cut(4).as_json("t")
    assert cut["key"] == {"size": 8, "base64": base64.b64encode(b"Orde").decode()}
    assert cut["headers"] == [
        {"key": "trace", "value": {"size": 8, "base64": base64.b64encode(b"\xff\x00ne").decode()}},
        {"key": "empty", "value": None},
    ]


def test_a_record_of_an_internal_topic_that_cannot_be_read_is_bytes_alone() -> None:
    assert RECORD.as_json("__consumer_offsets")["decoded"] is None
    assert RECORD.as_json("__transaction_state")["decoded"] is None
