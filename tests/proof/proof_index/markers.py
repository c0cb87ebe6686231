"""Marks of tests, read from their source: nothing is imported, so the list takes a second."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
KINDS: Final = {"scenario": "S", "kafka_bug": "K", "bug": "B"}
"""Names of marks, with the letter of their numbers."""
WITHOUT_TEST: Final[dict[str, str]] = {}
"""What no test can hold yet, and why."""
_MARK: Final = re.compile(r"\bmark\.(?:scenario|kafka_bug|bug)\(")


@dataclass(frozen=True, slots=True)
class Marker:
    """One mark of one test. ``says`` is empty but for one test of each number: a sentence, and before it a
    bug's cost (``records``, ``away``, ``words``) or the names that Kafka has for it.
    """

    number: str
    says: tuple[str, ...]
    path: str
    test: str


def markers() -> list[Marker]:
    """All marks of tests that pytest collects, by number and place."""
    found = [
        one
        for path in (ROOT / "tests").rglob("test_*.py")
        for one in markers_in(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    ]
    return sorted(found, key=lambda one: (*order_of(one.number), one.path, one.test))


def order_of(number: str) -> tuple[str, int]:
    """The place of ``B7`` is before that of ``B63``."""
    return number[0], int(number[1:])


def markers_in(text: str, path: str) -> list[Marker]:
    """The marks of one file. A mark elsewhere than at a test, or with another kind's number, is refused."""
    written = len(_MARK.findall(text))
    if not written:
        return []
    found = [
        Marker(number, tuple(says), path, test.name)
        for test in _tests_of(ast.parse(text))
        for kind, number, *says in _marks_of(test)
        if number[0] == KINDS[kind]
    ]
    if len(found) != written:
        raise ValueError(
            f"{path}: {written} marks, of which {len(found)} have a right number and are at a test"
        )
    return found


def _tests_of(module: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in module.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from (one for one in node.body if _is_test(one) and isinstance(one, ast.FunctionDef))
        elif _is_test(node) and isinstance(node, ast.FunctionDef):
            yield node


def _is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.startswith("test_")


def _marks_of(test: ast.FunctionDef) -> Iterator[list[str]]:
    """Name and arguments of each."""
    for one in test.decorator_list:
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in KINDS:
            yield [one.func.attr, *(str(ast.literal_eval(word)) for word in one.args)]
