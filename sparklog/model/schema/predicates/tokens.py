"""The text of a condition cut into tokens, as Spark's SQL has them: words, names in backticks, texts in
single quotes, bytes as X'00FF', numbers, signs.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from sparklog.model.errors import SchemaError
from sparklog.model.schema.ddl_tokens import BACKTICKS, TEXT, unescaped

Kind = Literal["word", "name", "text", "bytes", "number", "sign", "end"]

TEXT_CHARACTERS_MAX: Final = 200_000
"""The longest text of a condition."""

_SPACES: Final = re.compile(r"\s*")
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER: Final = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BYTES: Final = re.compile(r"[xX]'((?:[0-9A-Fa-f]{2})*)'")
_SIGN: Final = re.compile(r"<=>|<=|>=|<>|!=|==|[=<>!(),+.*/%-]")
_AFTER_NUMBER: Final = re.compile(r"[A-Za-z0-9_.]")


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` is what the token means: a name without backticks, a text without quotes and escapes."""

    kind: Kind
    text: str
    position: int
    """The first character's number, counted from 1."""

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else f"{self.text[:40]!r} at character {self.position}"


def tokens_of(text: str) -> list[Token]:
    """The tokens, and one that marks the end. SchemaError with the place of what is none."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise SchemaError(
            f"the condition has {len(text):,} characters, at most {TEXT_CHARACTERS_MAX:,} are allowed; "
            "filter the frame by the rest"
        )
    tokens: list[Token] = []
    position = _after_spaces(text, 0)
    while position < len(text):
        token, position = _token_at(text, position)
        tokens.append(token)
        position = _after_spaces(text, position)
    return [*tokens, Token("end", "", position + 1)]


def _after_spaces(text: str, position: int) -> int:
    spaces = _SPACES.match(text, position)
    return position if spaces is None else spaces.end()


def _token_at(text: str, start: int) -> tuple[Token, int]:
    at = start + 1
    if found := _BYTES.match(text, start):
        return Token("bytes", found.group(1), at), found.end()
    if found := _WORD.match(text, start):
        return Token("word", found.group(), at), found.end()
    if found := _NUMBER.match(text, start):
        if _AFTER_NUMBER.match(text, found.end()):
            raise SchemaError(f"the number at character {at} ends in another character: write 5, 5.25 or 5e3")
        return Token("number", found.group(), at), found.end()
    if found := BACKTICKS.match(text, start):
        return Token("name", found.group(1).replace("``", "`"), at), found.end()
    if text[start] == '"':
        raise SchemaError(f'" at character {at}: texts stand in single quotes, names in backticks')
    if found := TEXT.match(text, start):
        return Token("text", unescaped(found), at), found.end()
    if text[start] in "`'":
        raise SchemaError(f"{text[start]} at character {at} has no second one that ends what it begins")
    if found := _SIGN.match(text, start):
        return Token("sign", found.group(), at), found.end()
    raise SchemaError(f"{text[start]!r} at character {at} has no meaning in a condition")
