"""Scenarios, historical bugs, bug log, proof: the pages are complete, their tests exist, counts are right."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from simulation.mutants import MUTANTS
from simulation.plans.faults import ALL_KINDS
from simulation.plans.operations import ALL_OPERATIONS

ROOT = Path(__file__).parents[1]
PROOF_DOCS = ROOT / "tests/proof/docs"
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
NAMED_MODULE = re.compile(r"`(sparklog/[\w/]+\.py)`")
COMES_WITH = re.compile(r"comes with (transactions|groups|quotas)")


def rows(page: str) -> dict[int, list[str]]:
    """The cells behind the number, by number."""
    found: dict[int, list[str]] = {}
    for line in (PROOF_DOCS / page).read_text().splitlines():
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


def assert_names_tests_that_exist(cell: str) -> None:
    tests = NAMED_TEST.findall(cell)
    assert len(tests) == cell.count("::") > 0, cell
    for path, name in tests:
        assert name.startswith("test_")
        assert name in names_in(path), f"{path} has no {name}"


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
    assert_names_tests_that_exist(cell)


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


PROOF = (ROOT / "docs" / "proof.md").read_text()
BUG_LOG = (PROOF_DOCS / "bug-log.md").read_text()


def logged_bugs() -> dict[int, str]:
    """The section of each bug of the bug log, by the number in its heading."""
    _, *parts = re.split(r"^## B(\d+)$", BUG_LOG, flags=re.MULTILINE)
    numbers = [int(number) for number in parts[::2]]
    assert len(set(numbers)) == len(numbers), "a bug is logged twice"
    return dict(zip(numbers, parts[1::2], strict=True))


LOGGED = logged_bugs()


def test_no_number_of_the_bug_log_is_left_out() -> None:
    assert list(LOGGED) == list(range(1, len(LOGGED) + 1))


@pytest.mark.parametrize("number", LOGGED)
def test_each_logged_bug_says_title_cost_cause_and_fix(number: int) -> None:
    section = LOGGED[number]
    assert re.match(r"\n\n\*\*[^*\n]+\*\*\n\nCost: \*\w+\*\. Found by: \S", section)
    assert [section.count(f"\n{word}: ") for word in ("Cause", "Fix")] == [1, 1]


@pytest.mark.parametrize("number", LOGGED)
def test_each_logged_bug_names_tests_that_exist(number: int) -> None:
    assert_names_tests_that_exist("".join(re.findall(r"^- `tests/.*$", LOGGED[number], re.MULTILINE)))


def test_the_proof_counts_the_bugs_as_the_bug_log_does() -> None:
    costs = Counter(re.findall(r"^Cost: \*(\w+)\*", BUG_LOG, re.MULTILINE))
    counted = {cost: int(count) for cost, count in re.findall(r"^- \*(\w+)\*: (\d+) ", PROOF, re.MULTILINE)}
    assert counted == costs
    assert re.findall(r"^(\d+) bugs of the shipped code", PROOF, re.MULTILINE) == [str(costs.total())]


def test_the_proof_counts_the_mutants_that_there_are() -> None:
    assert re.findall(r"(\d+) historical bugs and holes put back", PROOF) == [str(len(MUTANTS))]


def test_the_proof_counts_the_kinds_of_faults_and_of_requests() -> None:
    counted = re.findall(r"(\d+) kinds of fault, (\d+) of administrators' requests", PROOF)
    assert counted == [(str(len(ALL_KINDS)), str(len(ALL_OPERATIONS)))]


RULES_OF_TRANSACTIONS = re.findall(
    r"^\| (T\d): (.*) \|$", (ROOT / "docs/transactions.md").read_text(), re.MULTILINE
)
JUDGES = "".join(
    path.read_text()
    for room in ("simulation", "histories")
    for path in (ROOT / "tests/proof" / room).rglob("*.py")
    if "tests" not in path.relative_to(ROOT / "tests/proof").parts
)


def test_no_rule_of_transactions_is_left_out() -> None:
    assert [name for name, _ in RULES_OF_TRANSACTIONS] == [f"T{number}" for number in range(1, 10)]


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in RULES_OF_TRANSACTIONS])
def test_each_rule_of_transactions_has_code_judges_and_mutants_that_exist(row: str) -> None:
    _, where, rules, proofs = row.split(" | ")
    assert [module for module in NAMED_MODULE.findall(where) if not (ROOT / module).is_file()] == []
    judges = re.findall(r"`(\w+)`", rules)
    assert judges
    assert [one for one in judges if f'"{one}"' not in JUDGES and f"class {one}(" not in JUDGES] == []
    assert set(re.findall(r"`([a-z-]+)`", proofs)) <= {mutant.name for mutant in MUTANTS}
    for path, name in NAMED_TEST.findall(proofs):
        assert name in names_in(path), f"{path} has no {name}"
