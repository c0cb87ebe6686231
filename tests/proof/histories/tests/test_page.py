"""tests/proof/docs/history.md is true: its fields' types are the reader's, its example passes.

Write its table of fields anew with: python tests/proof/histories/tests/test_page.py
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from histories import HistoryError
from histories.read import INT_MAX, NAME_MAX, VALUE_MAX, _Joiner

PAGE = Path(__file__).parents[2] / "docs" / "history.md"
TABLE = re.compile(r"\| Field \| Type \| Must be in \|.*?\n\n", re.DOTALL)
OF_EVERY_LINE = re.compile(r"\| Field \| Type \| Meaning \|.*?\n\n", re.DOTALL)

INTEGER = "integer", 0, (-1, 1.5, "0", True, INT_MAX + 1, [0])
TEXT = "text", "x", (1, True, ["x"], "x" * (NAME_MAX + 1))
VALUE = "value", "x", (1, True, ["x"], "x" * (VALUE_MAX + 1))
FLAG = "flag", True, (1, 0, "true", ["x"])
RECORDS = "list of [integer, value]", [[0, "x"]], ("x", {}, [0], [[0]], [[0, 0]], [["0", "x"]])
TRIPLES = "list of [integer, integer, value]", [[0, 0, "x"]], ("x", {}, [0], [[0, "x"]], [[0, "0", "x"]])
SHARES = "list of values", ["x"], ("x", {}, [0], [["x"]])
INTEGERS = "list of integers", [0], ("x", {}, ["x"], [[0]])
EPOCHS = "list of [integer, integer]", [[0, 1]], ("x", {}, [0], [[0]], [[0, "1"]])


def one_of(*values):
    told = [f"`{json.dumps(value)}`" for value in values]
    return " or ".join([", ".join(told[:-1]), told[-1]]), values[0], ("", "x", 7, True, False, ["x"], [])


TYPES = {
    "acks": one_of("all", 1, 0),
    "batches": TRIPLES,
    "before": INTEGER,
    "broker": TEXT,
    "cells": TRIPLES,
    "cleanup": one_of("delete", "compact"),
    "columns": INTEGERS,
    "end": INTEGER,
    "epochs": EPOCHS,
    "error": TEXT,
    "from": INTEGER,
    "generation": INTEGER,
    "group": TEXT,
    "high_watermark": INTEGER,
    "how": one_of("commit", "abort"),
    "id": TEXT,
    "idempotent": FLAG,
    "in_flight": INTEGER,
    "is_unclean": FLAG,
    "isolation": one_of("committed", "uncommitted"),
    "key": VALUE,
    "kind": TEXT,
    "leader": TEXT,
    "leader_epoch": INTEGER,
    "member": TEXT,
    "offset": INTEGER,
    "op": INTEGER,
    "partition": INTEGER,
    "phase": one_of("begin", "end"),
    "records": RECORDS,
    "seq": INTEGER,
    "session": TEXT,
    "shares": SHARES,
    "source": VALUE,
    "start": INTEGER,
    "target": TEXT,
    "tombstone": FLAG,
    "topic": TEXT,
    "transaction": TEXT,
    "transactional_id": TEXT,
    "value": VALUE,
    "waited_ms": INTEGER,
    "version": ("`1`", 1, (2, "1", True, [1])),
    "what": one_of("created", "deleted"),
    "why": TEXT,
    "write": TEXT,
}
"""Of each field: its type in words, a value that is one, values that are none."""

OF_KIND = {"dump": {"records": TRIPLES}, "send": {"cells": RECORDS}}
ON_EVERY_LINE = {"t_ns", "process", "type", "f"}
KINDS = sorted(_Joiner()._takers, key=lambda kind: (kind[1], kind[0]))


class Watched(dict):
    """Notes which fields are asked for."""

    def __init__(self, fields):
        super().__init__(fields)
        self.asked = set()

    def get(self, name, default=None):
        self.asked.add(name)
        return super().get(name, default)

    def __getitem__(self, name):
        self.asked.add(name)
        return super().__getitem__(name)

    def __contains__(self, name):
        self.asked.add(name)
        return super().__contains__(name)


def type_of(name, what):
    assert name in TYPES, f"say in TYPES what {name} of {what} is"
    return OF_KIND.get(what, {}).get(name, TYPES[name])


def full_line(kind, what):
    fields = {name: type_of(name, what)[1] for name in TYPES}
    return fields | {"t_ns": 1, "process": "p", "type": kind, "f": what}


def take(kind, what, fields):
    """Which fields the reader asked for in this line."""
    joiner = _Joiner()
    if kind != "invoke" and what in ("send", "end", "commit", "committed", "init", "finish"):
        joiner.take(0, full_line("invoke", what))
    watched = Watched(fields)
    joiner.take(1, watched)
    return watched.asked - ON_EVERY_LINE


def is_refused(kind, what, fields):
    try:
        take(kind, what, fields)
    except HistoryError:
        return True
    return False


def fields_of(kind, what):
    """Name of each field that is asked for, and whether it must be there."""
    line = full_line(kind, what)
    return {name: is_refused(kind, what, line | {name: None}) for name in sorted(take(kind, what, line))}


def table():
    rows = {}
    for kind, what in KINDS:
        for name, is_needed in fields_of(kind, what).items():
            needed, free = rows.setdefault((name, type_of(name, what)[0]), ([], []))
            (needed if is_needed else free).append((what, kind))
    lines = ["| Field | Type | Must be in | May be in |", "|---|---|---|---|"]
    for (name, told), places in sorted(rows.items()):
        lines.append(f"| `{name}` | {told} | {told_places(places[0])} | {told_places(places[1])} |")
    return "\n".join(lines) + "\n\n"


def told_places(places):
    """``send`` invoke, ok; ``topic``."""
    kinds = {}
    for what, kind in places:
        kinds.setdefault(what, []).append(kind)
    return "; ".join(
        f"`{what}`" + ("" if some == ["event"] else f" {', '.join(some)}") for what, some in kinds.items()
    )


def test_the_table_of_fields_is_what_the_reader_asks_for():
    assert TABLE.findall(PAGE.read_text()) == [table()]


def test_what_is_on_every_line_has_a_table_of_its_own():
    (told,) = OF_EVERY_LINE.findall(PAGE.read_text())
    assert set(re.findall(r"^\| `(\w+)` \|", told, re.MULTILINE)) == {*ON_EVERY_LINE, "op"}


def test_every_field_of_the_table_is_asked_for_somewhere():
    assert {name for kind, what in KINDS for name in fields_of(kind, what)} == set(TYPES)


@pytest.mark.parametrize(("kind", "what"), KINDS, ids=[f"{what}-{kind}" for kind, what in KINDS])
def test_fields_of_another_type_are_refused_and_absent_is_as_good_as_null(kind, what):
    line = full_line(kind, what)
    for name, is_needed in fields_of(kind, what).items():
        for wrong in type_of(name, what)[2]:
            assert is_refused(kind, what, line | {name: wrong}), (name, wrong)
        without = {given: value for given, value in line.items() if given != name}
        assert is_refused(kind, what, without) == is_needed, name


@pytest.fixture
def example():
    """The page's lines, its command, and the beginning and end of what it prints."""
    section = PAGE.read_text().split("## An example\n")[1]
    lines, printed = re.findall(r"```\n(.*?)```", section, re.DOTALL)
    (command,) = re.findall(r"^    (python -m .*)$", section, re.MULTILINE)
    return lines, shlex.split(command)[1:], printed


def test_the_example_of_the_page_is_clean_under_the_command_of_the_page(example, tmp_path):
    lines, arguments, printed = example
    (tmp_path / "history.jsonl").write_text(lines)
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    first, last = printed.split("...\n")
    assert done.stdout.startswith(first)
    assert done.stdout.endswith(f"\n{last}")
    assert (done.stderr, done.returncode) == ("", 0)


def test_the_example_of_the_page_keeps_to_the_types_of_the_page(example):
    for line in map(json.loads, example[0].splitlines()):
        asked = fields_of(line["type"], line["f"])
        assert set(line) - ON_EVERY_LINE <= set(asked), line


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: table(), PAGE.read_text()))
