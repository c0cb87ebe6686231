"""Exported offsets are read again, those of Kafka's tool as well."""

from pathlib import Path

import pytest

from sparklog.cli.coordinators.groups.offsets_file import plan_text, read_plan
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition

PLAN = {TopicPartition("b", 1): 7, TopicPartition("a", 0): 0}


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "plan.csv"
    path.write_text(text)
    return path


def test_what_is_exported_is_read_again(tmp_path: Path) -> None:
    text = plan_text(PLAN)
    assert text == "a,0,0\nb,1,7\n"
    assert read_plan(written(tmp_path, text), "g") == PLAN


def test_lines_of_kafkas_tool_for_several_groups_are_read_too(tmp_path: Path) -> None:
    assert read_plan(written(tmp_path, '"g","a",0,0\r\n\r\ng, b, 1, 7\r\n'), "g") == PLAN


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no offsets"),
        ("a,0\n", "line 1: 'a,0' is not topic,partition,offset"),
        ("a,0,0\na,0,1\n", "line 2: a-0 is named for the second time"),
        ("a,x,0\n", "line 1: partition 'x' is not a whole number from 0 on"),
        ("a,0,-1\n", "line 1: offset '-1' is not a whole number from 0 on"),
        ("other,a,0,0\n", "line 1: is for group 'other', and 'g' is reset"),
        ("a b,0,0\n", "line 1: topic name 'a b' has characters"),
    ],
)
def test_a_line_that_is_not_understood_is_named(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(SparklogError) as raised:
        read_plan(written(tmp_path, text), "g")
    assert problem in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SparklogError, match="cannot be read as offsets"):
        read_plan(tmp_path / "none.csv", "g")
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SparklogError, match="cannot be read as offsets"):
        read_plan(path, "g")
