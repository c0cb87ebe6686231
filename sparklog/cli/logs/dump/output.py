"""The output of a dump: text, or one JSON object, on standard output.

Files, batches and records are written one by one and not kept, so the JSON object may be larger than memory.
With text, problems are printed on standard error at the end, as in Kafka's tool.
"""

import json
import sys
from collections.abc import Callable
from typing import Any, Final, Protocol

from sparklog.cli.logs.dump.problems import Problems
from sparklog.cli.logs.dump.rows import Row

Write = Callable[[str], object]


class Output(Protocol):
    """Receives, in order: a file, its facts, its rows, each with its parts; and finally the end."""

    def begin_file(self, path: str, kind: str, rows: str) -> None:
        """Begin a file; ``rows`` is the name of its rows."""
        ...

    def fact(self, name: str, value: object, text: str) -> None:
        """A fact about the whole file, before its first row."""
        ...

    def row(self, row: Row) -> None: ...

    def part(self, kind: str, row: Row) -> None: ...

    def remark(self, text: str) -> None:
        """A line that is not a row; in JSON it is one of the problems."""
        ...

    def end(self, problems: Problems) -> None: ...


class TextOutput:
    """``Output`` as text, for people and for programs that parse the output of Kafka's tool."""

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
    """``Output`` as JSON: ``{"files": [{"batches": [{"records": []}]}], "problems": []}``.

    The state is a stack of pending closing brackets, and the name of the open list at each level.
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
        """Names of the open lists: the file's rows, and the row's parts."""

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
        """Does nothing, because the list of problems has it."""

    def end(self, problems: Problems) -> None:
        self._close_file()
        self._write('], "problems": [')
        for nth, problem in enumerate(problems.data()):
            self._write(f"{', ' if nth else ''}{json.dumps(problem)}")
        self._write("]}\n")

    def _add(self, level: int, kind: str, data: dict[str, Any]) -> None:
        """Write an object without its closing bracket, so that lists can be added to it."""
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
