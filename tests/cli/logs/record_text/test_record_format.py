"""Records by a format of the user's."""

import argparse

import pytest

from sparklog.cli.logs.record_text.record import Record
from sparklog.cli.logs.record_text.record_format import RecordFormat
from sparklog.model.ids import TopicPartition

TP = TopicPartition("t", 3)


def shown(text: str, record: Record) -> str:
    return RecordFormat(text).line(TP, 7, record).decode()


def test_names_in_braces_stand_for_the_parts_of_a_record() -> None:
    record = Record(b"v", b"k", (("a", b"1"), ("b", None)), timestamp_ms=12)
    everything = r"{topic}\t{partition}\t{offset}\n{timestamp} {key}={value} {headers} {{\\t}}"
    assert shown(everything, record) == "t\t3\t7\n12 k=v a=1,b=null {\\t}"


def test_what_is_not_there_is_null_and_no_header_is_nothing() -> None:
    assert shown("{timestamp} {key} {value} <{headers}>", Record(None)) == "null null null <>"


def test_bytes_that_are_no_text_are_shown_by_their_numbers() -> None:
    assert shown("{key} {value}", Record(b"\xff\xc3\xa4", b"a\x80")) == r"a\x80 \xffä"


def test_braces_in_a_record_are_no_names() -> None:
    assert shown("{value}", Record(b"{key} {")) == "{key} {"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{vlaue}", "{vlaue} is no part of a record; did you mean value?"),
        ("{}", "{} is no part of a record; there are {topic}, {partition}"),
        ("{0}", "{0} is no part"),
        ("{value!r}", "{value!r} is no part"),
        ("{value:>10}", "{value:>10} is no part"),
        ("{value.real}", "{value.real} is no part"),
        ("{value", "has a single brace"),
        ("value}", "has a single brace"),
        ("\udcff", "is no text in UTF-8"),
    ],
)
def test_what_is_no_format_is_refused_with_what_there_is(text: str, complaint: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        RecordFormat(text)
    assert complaint in str(refused.value)
