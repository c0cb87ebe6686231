"""``ssl.principal.mapping.rules``: how the name in a client's certificate becomes a principal's (KIP-371).

Rules are separated by commas; the first that fits the whole name decides:

    DEFAULT                            the name as it is
    RULE:PATTERN/REPLACEMENT/[LU]      $1, $2 ... are the groups of the pattern; L lower case, U upper case

Patterns are Java's regular expressions. Python's are the same in what such rules use. What would mean
something else in Python is refused, because another principal would be a hole: operators inside of brackets.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from sparklog.model.errors import ConfigError

_DEFAULT: Final = "DEFAULT"
_SHOWN_MAX: Final = 200
_RULE: Final = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)", re.DOTALL)
_SEPARATOR: Final = re.compile(r"\s*(?:,\s*|$)")
_PIECE: Final = re.compile(r"\\(.)|\$\{(\w+)\}|\$(\d+)|([^\\$]+)|(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Rule:
    """``replacement`` has literal texts, and the numbers or names of groups."""

    pattern: re.Pattern[str]
    replacement: tuple[tuple[str | int, bool], ...]
    case: str

    def applied_to(self, name: str) -> str | None:
        if self.pattern.fullmatch(name) is None:
            return None
        found = self.pattern.sub(self._replaced, name)
        return {"L": found.lower(), "U": found.upper()}.get(self.case, found)

    def _replaced(self, match: re.Match[str]) -> str:
        return "".join(
            (match[piece] or "") if is_group else str(piece) for piece, is_group in self.replacement
        )


@dataclass(frozen=True, slots=True)
class PrincipalRules:
    """The rules of one listener; ``text`` is how they were written."""

    text: str = _DEFAULT
    _rules: tuple[_Rule | None, ...] = field(default=(None,), repr=False)

    @classmethod
    def parse(cls, text: str) -> "PrincipalRules":
        """Raises ConfigError, with the rule that is none; the caller adds the setting's name."""
        rules: list[_Rule | None] = []
        rest = text.strip()
        while rest:
            rule, rest = _first_rule(rest)
            rules.append(rule)
        if not rules:
            raise ConfigError("there is no rule; write DEFAULT, or leave the setting out")
        return cls(text, tuple(rules))

    def name_of(self, subject: str) -> str:
        """The principal's name for the name of a certificate; ValueError if no rule fits."""
        for rule in self._rules:
            name = subject if rule is None else rule.applied_to(subject)
            if name is not None:
                return name
        shown = "".join(one if one.isprintable() else "?" for one in subject[:_SHOWN_MAX])
        raise ValueError(f"no rule of ssl.principal.mapping.rules={self.text} fits the name {shown}")


def _first_rule(text: str) -> tuple[_Rule | None, str]:
    """The rule that ``text`` begins with, None for DEFAULT; and the text after it."""
    found = _RULE.match(text)
    end = found.end() if found else len(_DEFAULT) if text.startswith(_DEFAULT) else 0
    separator = _SEPARATOR.match(text, end)
    if not end or separator is None:
        raise ConfigError(f"{text!r} does not begin with DEFAULT or RULE:PATTERN/REPLACEMENT/[LU]")
    return (_rule(found[1], found[2], found[3]) if found else None), text[separator.end() :]


def _rule(pattern: str, replacement: str, case: str) -> _Rule:
    _refuse_java_classes(pattern)
    try:
        compiled = re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", pattern), re.ASCII)
    except re.error as error:
        raise ConfigError(f"{pattern!r} is no regular expression that can be used: {error}") from None
    return _Rule(compiled, _pieces(replacement, compiled), case)


def _refuse_java_classes(pattern: str) -> None:
    """Inside of brackets Java reads ``[`` and ``&&`` as operators, and Python as characters."""
    for inside in re.findall(r"\[\^?\]?((?:\\.|[^\\\]])*)\]", re.sub(r"\\[\[\]]", "", pattern)):
        if re.search(r"\[|&&|\|\||--|~~", re.sub(r"\\.", "", inside)):
            raise ConfigError(
                f"{pattern!r} has an operator inside of brackets, [{inside}]; write the characters one by one"
            )


def _pieces(replacement: str, pattern: re.Pattern[str]) -> tuple[tuple[str | int, bool], ...]:
    return tuple(piece for found in _PIECE.finditer(replacement) for piece in _piece(found, pattern))


def _piece(found: re.Match[str], pattern: re.Pattern[str]) -> list[tuple[str | int, bool]]:
    escaped, name, digits, literal, _ = found.groups()
    if escaped or literal:
        return [(escaped or literal, False)]
    if name in pattern.groupindex:
        return [(name, True)]
    if not digits or (pattern.groups == 0 and digits[0] != "0"):
        raise ConfigError(f"{found[0]!r} names no group of {pattern.pattern!r}; write \\$ for a dollar")
    return _numbered(digits, pattern.groups)


def _numbered(digits: str, groups: int) -> list[tuple[str | int, bool]]:
    """As Kafka: the most digits that name a group, the others are text; without any, all is text."""
    if int(digits[0]) > groups:
        return [(f"${digits}", False)]
    taken = 1
    while taken < len(digits) and int(digits[: taken + 1]) <= groups:
        taken += 1
    rest = [(digits[taken:], False)] if digits[taken:] else []
    return [(int(digits[:taken]), True), *rest]
