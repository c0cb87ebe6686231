"""What a request asks for: the parameters of its path and of its query, each checked when it is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sparklog.model.errors import SparklogError

ROWS_PER_PAGE: Final = 100
INT64_MAX: Final = 2**63 - 1


class BadQuestion(SparklogError):  # noqa: N818 (a state, not a mistake)
    """A parameter that the view cannot use; the message has its value."""


class NothingThere(SparklogError):  # noqa: N818 (a state, not a mistake)
    """What the path names does not exist."""


@dataclass(frozen=True, slots=True)
class Question:
    """``path``: the parts that the route has names for; ``query``: the last value of each name."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        return self.query.get(name, default)

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of ``choices``, the first if none is given."""
        chosen = self.query.get(name) or choices[0]
        if chosen not in choices:
            raise BadQuestion(f"{name}={chosen[:100]!r} is none of {', '.join(choices)}")
        return chosen

    def flag(self, name: str) -> bool:
        return self.choice(name, ("false", "true")) == "true"

    def number(self, name: str, default: int, *, least: int = 0, most: int = INT64_MAX) -> int:
        """A whole number of the path or of the query."""
        return self.number_or_none(name, least=least, most=most, default=default) or 0

    def number_or_none(
        self, name: str, *, least: int = 0, most: int = INT64_MAX, default: int | None = None
    ) -> int | None:
        given = self.path.get(name, self.query.get(name, ""))
        if given == "":
            return default
        digits = given.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
            raise BadQuestion(f"{name}={given[:100]!r} is no whole number")
        if not least <= int(given) <= most:
            raise BadQuestion(f"{name}={given}: from {least} to {most}")
        return int(given)


def page_of(rows: Sequence[object], question: Question) -> dict[str, object]:
    """The rows of the page that is asked for, and where it is: pages begin with 0."""
    last = max(0, (len(rows) - 1) // ROWS_PER_PAGE)
    page = min(question.number("page", 0), last)
    begin = page * ROWS_PER_PAGE
    return {"rows": rows[begin : begin + ROWS_PER_PAGE], "page": page, "pages": last + 1, "total": len(rows)}
