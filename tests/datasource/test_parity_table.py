"""connector-parity.md has every row that can be had; each names tests that run with both Sparks."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE / "connector-parity.md"

POSSIBLE = {
    "MB": "2-13 17-20 23-29 32-37",
    "SR": "1-31 33-42",
    "RL": "1-23",
    "SK": "1-15",
    "OF": "1-12 14-15",
    "RC": "1-3 5-19",
    "OR": "1-11 13-16",
    "DL": "2 5-6",
    "PL": "1-24",
    "SQL": "1-2",
}
"""Of each suite, the tests that a Python source can satisfy."""


def numbers(ranges: str) -> list[int]:
    found: list[int] = []
    for part in re.split(r"[ ,]+", ranges.strip()):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def lines() -> list[list[str]]:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[1:]]


def test_every_test_of_the_connector_that_a_python_source_can_satisfy_has_one_line() -> None:
    told: dict[str, list[int]] = {}
    for covers, *_ in lines():
        for part in covers.split(";"):
            suite, _, ranges = part.strip().partition(" ")
            told.setdefault(suite, []).extend(numbers(ranges))
    assert {suite: sorted(found) for suite, found in told.items()} == {
        suite: numbers(ranges) for suite, ranges in POSSIBLE.items()
    }


def test_what_differs_is_explained() -> None:
    for row in lines():
        assert re.match(
            r"same($|; \w+| (in|for) .*impossible)|better \(\w+|impossible (as|with) .*;", row[2]
        ), row


NAMED = sorted({name for row in lines() for name in re.findall(r"`(test_\w+::test_\w+)`", row[3])})


@pytest.mark.parametrize("name", NAMED)
def test_a_named_test_exists_and_runs_with_both_sparks(name: str) -> None:
    stem, _, function = name.partition("::")
    (path,) = HERE.rglob(f"{stem}.py")
    tree = ast.parse(path.read_text())
    marks = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign)]
    (found,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
    all_marks = " ".join([*marks, *(ast.unparse(decorator) for decorator in found.decorator_list)])
    assert "mark.integration" not in all_marks or "mark.every_spark" in all_marks


def test_each_line_names_tests() -> None:
    assert len(NAMED) > len(lines()) / 2
    assert [row for row in lines() if "::" not in row[3]] == []
