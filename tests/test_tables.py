"""Scenarios and bugs have tests and mutants, by number; counts are right; so are rules of transactions."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from proof_index.__main__ import main
from proof_index.counts import COSTS, PAGE, counts_page
from proof_index.markers import WITHOUT_TEST, Marker, markers, markers_in
from simulation.mutants import MUTANTS

ROOT = Path(__file__).parents[1]
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
NAMED_MODULE = re.compile(r"`(sparklog/[\w/]+\.py)`")
WORDS_MAX = 20
MARKERS = markers()
SAYS = [(one.number, one.says) for one in MARKERS if one.says]
TESTS = {number: [one.test for one in MARKERS if one.number == number] for number, _ in SAYS}
LAST = {"S": 64, "K": 34, "B": 91}
"""A number is never given twice: the next bug is the next number."""
WITHOUT_MUTANT = {
    "K33": "a paused leader that shrinks its ISR breaks no promise: eligible replicas keep leading",
}
"""Bugs of Kafka's that no mutant brings back, each with the reason."""


def test_each_number_is_at_a_test_and_told_once() -> None:
    numbers = [f"{kind}{number}" for kind, last in LAST.items() for number in range(1, last + 1)]
    assert sorted([*(number for number, _ in SAYS), *WITHOUT_TEST]) == sorted(numbers)
    assert {one.number for one in MARKERS} == {number for number, _ in SAYS}


def test_no_test_has_a_number_twice() -> None:
    places = [(one.number, one.path, one.test) for one in MARKERS]
    assert len(set(places)) == len(places)


def test_marks_are_read_at_tests_and_refused_elsewhere() -> None:
    mark = "@pytest.mark." + 'bug("B7", "away", "A sentence.")\n'
    of_test = f"class TestOne:\n    {mark}    def test_it(self): ...\n"
    assert markers_in(of_test, "a.py") == [Marker("B7", ("away", "A sentence."), "a.py", "test_it")]
    for elsewhere in (
        f"{mark}def helper(): ...\n",
        f"{mark}class TestOne: ...\n",
        of_test.replace("B7", "K7"),
    ):
        with pytest.raises(ValueError, match=r"a\.py: 1 marks, of which 0"):
            markers_in(elsewhere, "a.py")


@pytest.mark.parametrize(("number", "says"), SAYS, ids=[number for number, _ in SAYS])
def test_each_number_is_told_in_a_sentence(number: str, says: tuple[str, ...]) -> None:
    *before, sentence = says
    assert sentence[0].isupper() or sentence.startswith("min.")
    assert sentence.endswith(".")
    assert len(sentence.split()) <= WORDS_MAX
    assert len(before) == (0 if number.startswith("S") else 1)
    assert not number.startswith("B") or before[0] in COSTS


@pytest.mark.parametrize(
    ("number", "known_as"), [(number, says[0]) for number, says in SAYS if number.startswith("K")]
)
def test_each_bug_of_kafka_has_a_test_that_is_named_for_it(number: str, known_as: str) -> None:
    names = [one.strip().lower().replace("-", "_") for one in known_as.split(",")]
    assert any(test.startswith(f"test_{name}_") for test in TESTS[number] for name in names), names


def test_mutants_bring_back_bugs_that_have_numbers_and_nearly_all_of_kafka() -> None:
    brought = {number for mutant in MUTANTS for number in mutant.brings_back}
    assert brought <= TESTS.keys()
    missing = {number for number in TESTS if number.startswith("K")} - brought
    assert missing == WITHOUT_MUTANT.keys(), "say why, or take it off the list"


def test_the_page_of_counts_is_what_the_command_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == counts_page(MARKERS), "python -m proof_index --write"


def test_the_command_prints_a_number_with_its_tests_and_mutants(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["B63", "S16"]) == 0
    told = capsys.readouterr().out
    assert "B63  records: A producer gets a false gap error" in told
    assert "::test_batches_after_one_refused_for_a_small_isr_are_refused_until_it_is_resent\n" in told
    assert "mutant what-is-behind-a-refused-batch-comes-first" in told
    assert "::test_librdkafka_reports_its_throttle_time_and_delivers\n" in told
    assert "S17" not in told
    with pytest.raises(SystemExit):
        main(["B0"])


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


RULES_OF_TRANSACTIONS = re.findall(
    r"^\| (T\d): (.*) \|$", (ROOT / "tests/proof/rules-of-transactions.md").read_text(), re.MULTILINE
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
