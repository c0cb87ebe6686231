"""Spark's DDL cut into tokens: words, names in backticks, texts, whole numbers and signs.

Comments (``-- …`` and ``/* … */``, which nest) and whitespace lie between tokens. A word that reads as a
number, as ``1d`` does, is no name in Spark either.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from sparklog.model.errors import SchemaError

Kind = Literal["word", "name", "text", "number", "sign", "end"]

_SPACES: Final = re.compile("(?:[ \r\n\t\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]|--[^\r\n]*)+")
_WORD: Final = re.compile(r"[A-Za-z0-9_]+")
_BARE: Final = re.compile(r"[^\s,;<>():'\"`]+")
"""What a user took for a name, if it is not a word."""
_NUMBER_LIKE: Final = re.compile(r"[0-9]+(e[0-9]+)?([yslfd]|bd)?", re.IGNORECASE)
BACKTICKS: Final = re.compile(r"`((?:[^`]|``)*)`")
RAW_TEXT: Final = re.compile(r"""[rR]'([^']*)'|[rR]"([^"]*)\"""")
TEXT: Final = re.compile(r"""'((?:[^'\\]|\\.|'')*)'|"((?:[^"\\]|\\.|"")*)\"""", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")
_SIGNS: Final = "<>(),:!;"
_CODE_POINT_MAX: Final = 0x10FFFF


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` is what the token means: a name without backticks, a text without quotes and escapes."""

    kind: Kind
    text: str
    position: int
    """The first character's number in the DDL, counted from 1."""


def tokens_of(ddl: str) -> list[Token]:
    """The tokens, and one that marks the end. Raises SchemaError with the place of what is none."""
    tokens: list[Token] = []
    position = 0
    while True:
        position = _after_blanks(ddl, position)
        if position == len(ddl):
            tokens.append(Token("end", "", position + 1))
            return tokens
        token, position = _token_at(ddl, position)
        tokens.append(token)


def _after_blanks(ddl: str, position: int) -> int:
    while True:
        spaces = _SPACES.match(ddl, position)
        if spaces:
            position = spaces.end()
        elif ddl.startswith("/*", position):
            position = _after_comment(ddl, position)
        else:
            return position


def _after_comment(ddl: str, start: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(ddl, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise SchemaError(f"schema: the comment at character {start + 1} has no end; close it with */")


def _token_at(ddl: str, start: int) -> tuple[Token, int]:
    at = start + 1
    raw = RAW_TEXT.match(ddl, start)
    if raw:
        return Token("text", raw.group(1) or raw.group(2) or "", at), raw.end()
    word = _WORD.match(ddl, start)
    if word:
        return _word(ddl, word), word.end()
    if ddl[start] in _SIGNS:
        return Token("sign", ddl[start], at), start + 1
    quoted = BACKTICKS.match(ddl, start)
    if quoted:
        return Token("name", quoted.group(1).replace("``", "`"), at), quoted.end()
    text = TEXT.match(ddl, start)
    if text:
        return Token("text", unescaped(text), at), text.end()
    if ddl[start] in "`'\"":
        raise SchemaError(
            f"schema: {ddl[start]} at character {at} has no second one that ends what it begins"
        )
    raise _no_word(ddl, start)


def _word(ddl: str, word: re.Match[str]) -> Token:
    bare = _BARE.match(ddl, word.start())
    if bare and bare.end() > word.end() and not ddl.startswith(("--", "/*", "!"), word.end()):
        raise _no_word(ddl, word.start())
    text = word.group()
    if text.isdigit():
        return Token("number", text, word.start() + 1)
    if _NUMBER_LIKE.fullmatch(text):
        raise _no_word(ddl, word.start())
    return Token("word", text, word.start() + 1)


def _no_word(ddl: str, start: int) -> SchemaError:
    bare = _BARE.match(ddl, start)
    found = bare.group()[:100] if bare else ddl[start]
    return SchemaError(f"schema: {found} at character {start + 1} is no plain name; write `{found}`")


def unescaped(text: re.Match[str]) -> str:
    single, double = text.groups()
    doubled = single.replace("''", "'") if single is not None else double.replace('""', '"')
    return _ESCAPE.sub(_meaning, doubled)


def _meaning(escape: re.Match[str]) -> str:
    short, long, octal, character = escape.groups()
    if character is not None:
        return _ESCAPED.get(character, character)
    code = int(octal, 8) if octal is not None else int(short or long, 16)
    return chr(code) if code <= _CODE_POINT_MAX else escape.group()[1:]
