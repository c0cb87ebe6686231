"""The pages of scenarios and historical bugs: complete, and every test on them is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from sparklog.testing.simulation.mutants import MUTANTS

ROOT = Path(__file__).parents[1]
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
NAMED_MODULE = re.compile(r"`(sparklog/[\w/]+\.py)`")
COMES_WITH = re.compile(r"comes with (transactions|groups|quotas)")


def rows(page: str) -> dict[int, list[str]]:
    """The cells behind the number, by number."""
    found: dict[int, list[str]] = {}
    for line in (ROOT / "docs" / page).read_text().splitlines():
        number, *cells = (cell.strip() for cell in line.strip("|").split(" | "))
        if number.isdigit():
            assert int(number) not in found, f"{page}: {number} is there twice"
            found[int(number)] = cells
    return found


SCENARIOS, BUGS = rows("scenarios.md"), rows("historical-bugs.md")


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_no_scenario_and_no_bug_is_left_out() -> None:
    assert list(SCENARIOS) == list(range(1, 65))
    assert list(BUGS) == list(range(1, 35))


@pytest.mark.parametrize(
    "cell",
    [
        *(pytest.param(cells[1], id=f"scenario-{number}") for number, cells in SCENARIOS.items()),
        *(pytest.param(cells[3], id=f"bug-{number}") for number, cells in BUGS.items()),
    ],
)
def test_each_has_tests_that_exist_or_comes_with_a_part_that_is_still_to_be_made(cell: str) -> None:
    if COMES_WITH.fullmatch(cell):
        return
    tests = NAMED_TEST.findall(cell)
    assert len(tests) == cell.count("::") > 0, cell
    for path, name in tests:
        assert name.startswith("test_")
        assert name in names_in(path), f"{path} has no {name}"


@pytest.mark.parametrize("number", BUGS)
def test_each_bug_has_a_test_that_is_named_for_it(number: int) -> None:
    known_as, _, _, cell, _ = BUGS[number]
    if COMES_WITH.fullmatch(cell):
        return
    names = [one.strip().lower().replace("-", "_") for one in known_as.split(",")]
    tests = [name for _, name in NAMED_TEST.findall(cell)]
    assert any(test.startswith(f"test_{name}_") for test in tests for name in names), (names, tests)


@pytest.mark.parametrize("number", BUGS)
def test_the_rule_against_each_bug_is_in_a_module_that_exists(number: int) -> None:
    _, _, rule, cell, mutants = BUGS[number]
    modules = NAMED_MODULE.findall(rule)
    assert modules or COMES_WITH.fullmatch(cell)
    assert [module for module in modules if not (ROOT / module).is_file()] == []
    known = {mutant.name for mutant in MUTANTS}
    assert set(re.findall(r"`([\w-]+)`", mutants)) <= known
