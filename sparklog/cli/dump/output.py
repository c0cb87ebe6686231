"""Where the lines go: standard output as text, or as one JSON object that is written while it is made.

Files, batches and records come one after the other, and none is kept; the JSON object may be larger than
memory. In text, problems follow on standard error when everything has been shown, as Kafka's tool has them.
"""

import json
import sys
from collections.abc import Callable
from typing import Any, Final, Protocol

from sparklog.cli.dump.problems import Problems
from sparklog.cli.dump.rows import Row

Write = Callable[[str], object]


class Output(Protocol):
    """Called in order: a file, its facts, its rows, each with its parts; at last, the end."""

    def begin_file(self, path: str, kind: str, rows: str) -> None:
        """``rows`` is what its rows are called."""
        ...

    def fact(self, name: str, value: object, text: str) -> None:
        """Something about the file as a whole, before its first row."""
        ...

    def row(self, row: Row) -> None: ...

    def part(self, kind: str, row: Row) -> None: ...

    def remark(self, text: str) -> None:
        """A line that is no row, and in JSON among the problems."""
        ...

    def end(self, problems: Problems) -> None: ...


class TextOutput:
    """Implements ``Output`` for people, and for what reads Kafka's tool."""

    def __init__(self, write: Write, complain: Write) -> None:
        self._write = write
        self._complain = complain

    def begin_file(self, path: str, kind: str, rows: str) -> None:
        self._write(f"Dumping {path}\n")

    def fact(self, name: str, value: object, text: str) -> None:
        self._write(f"{text}\n")

    def row(self, row: Row) -> None:
        self._write(f"{row.text()}\n")

    def part(self, kind: str, row: Row) -> None:
        self._write(f"{row.text()}\n")

    def remark(self, text: str) -> None:
        self._write(f"{text}\n")

    def end(self, problems: Problems) -> None:
        sys.stdout.flush()
        for line in problems.lines():
            self._complain(f"{line}\n")


class JsonOutput:
    """Implements ``Output`` for programs: ``{"files": [{"batches": [{"records": []}]}], "problems": []}``.

    What is open is a stack of closing brackets, and the name of the list that is being filled at each level.
    """

    _FILE: Final = 0
    _ROW: Final = 1

    def __init__(self, write: Write) -> None:
        self._write = write
        self._write('{"files": [')
        self._has_files = False
        self._rows = ""
        self._has_rows = False
        self._lists: list[str] = []
        """Names of the open lists: of rows in the file, of parts in the row."""

    def begin_file(self, path: str, kind: str, rows: str) -> None:
        self._close_file()
        head = json.dumps({"file": path, "kind": kind})
        self._write(f"{', ' if self._has_files else ''}{head[:-1]}")
        self._has_files = True
        self._rows = rows
        self._has_rows = False

    def fact(self, name: str, value: object, text: str) -> None:
        self._write(f", {json.dumps(name)}: {json.dumps(value)}")

    def row(self, row: Row) -> None:
        self._add(self._FILE, self._rows, row.data())
        self._has_rows = True

    def part(self, kind: str, row: Row) -> None:
        self._add(self._ROW, kind, row.data())

    def remark(self, text: str) -> None:
        """Problems tell it."""

    def end(self, problems: Problems) -> None:
        self._close_file()
        self._write('], "problems": [')
        for nth, problem in enumerate(problems.data()):
            self._write(f"{', ' if nth else ''}{json.dumps(problem)}")
        self._write("]}\n")

    def _add(self, level: int, kind: str, data: dict[str, Any]) -> None:
        """Leaves the new object open at its end, for lists within it."""
        while len(self._lists) > level + 1 or (len(self._lists) == level + 1 and self._lists[level] != kind):
            self._close_list()
        if len(self._lists) == level + 1:
            self._write("}, ")
        else:
            self._write(f", {json.dumps(kind)}: [")
            self._lists.append(kind)
        self._write(json.dumps(data)[:-1])

    def _close_list(self) -> None:
        self._write("}]")
        self._lists.pop()

    def _close_file(self) -> None:
        while self._lists:
            self._close_list()
        if self._has_files:
            self._write("}" if self._has_rows else f", {json.dumps(self._rows)}: []}}")
