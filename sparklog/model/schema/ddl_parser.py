"""Columns out of Spark's DDL, as ``StructType.fromDDL`` reads them:

    column: NAME TYPE [NOT NULL] [COMMENT 'text']      columns are separated by commas
    TYPE:   a scalar type, array<TYPE>, map<TYPE, TYPE>, struct<NAME[:] TYPE [NOT NULL] [COMMENT 'text'], …>

Names and types are words in any case; other names stand in backticks, in which a backtick is doubled.
"""

from itertools import takewhile
from typing import Final

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import Array, Columns, DataType, Field, Map, Scalar, Struct
from sparklog.model.schema.ddl_tokens import Token, tokens_of
from sparklog.model.schema.paths import joined
from sparklog.model.schema.schema_limits import check_depth
from sparklog.model.schema.type_names import known_name, refuse_collation, scalar_type

_COMPLEX: Final = {"array": "array<int>", "map": "map<string, int>", "struct": "struct<a: int>"}
"""Names of types that are made of others, each with an example."""

_DIGITS_MAX: Final = 9
"""Digits of a number in parentheses: more is no precision of any type."""


def parse_ddl(ddl: str) -> Columns:
    """The columns, without ids. Raises SchemaError with the place and the remedy."""
    parser = _Parser(tokens_of(ddl))
    columns = parser.fields("", has_colons=False, depth=1)
    parser.end()
    return columns


def parse_column(path: str, name: str, text: str, *, depth: int = 1) -> Field:
    """The column ``name``, whose type, NOT NULL and comment ``text`` has; ``depth``: levels down to its type.

    Raises SchemaError, which names the column at ``path``.
    """
    parser = _Parser(tokens_of(text))
    column = parser.described(path, name, depth)
    parser.end()
    return column


class _Parser:
    __slots__ = ("_next", "_tokens")

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def fields(self, parent: str, *, has_colons: bool, depth: int) -> Columns:
        found = [self._field(parent, has_colons=has_colons, depth=depth)]
        while self._takes_sign(","):
            found.append(self._field(parent, has_colons=has_colons, depth=depth))
        return tuple(found)

    def end(self) -> None:
        if self._token.kind != "end":
            raise self._unexpected("a comma or the end")

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _field(self, parent: str, *, has_colons: bool, depth: int) -> Field:
        name = self._name()
        path = joined(parent, name)
        if has_colons:
            self._takes_sign(":")
        return self.described(path, name, depth)

    def described(self, path: str, name: str, depth: int) -> Field:
        """The field, from its type on."""
        data_type = self._type(path, depth)
        is_required = self._takes_word("not") or self._takes_sign("!")
        if is_required and not self._takes_word("null"):
            raise self._unexpected("NULL after NOT")
        comment = self._comment() if self._takes_word("comment") else ""
        return Field(name, data_type, nullable=not is_required, comment=comment)

    def _name(self) -> str:
        token = self._token
        if token.kind not in ("word", "name"):
            raise self._unexpected("a column's name")
        self._next += 1
        return token.text

    def _type(self, path: str, depth: int) -> DataType:
        check_depth(path, depth)
        token = self._token
        if token.kind not in ("word", "name"):
            raise self._unexpected(f"the type of column {path}")
        self._next += 1
        name = token.text.lower()
        if token.kind == "name":
            raise SchemaError(
                f"column {path}: there is no type `{token.text}`; types stand without backticks"
            )
        if name in _COMPLEX:
            return self._complex(path, name, depth)
        return self._scalar(path, name)

    def _complex(self, path: str, name: str, depth: int) -> DataType:
        if not self._takes_sign("<"):
            raise SchemaError(f"column {path}: {name} lacks what it is made of; write e.g. {_COMPLEX[name]}")
        found: DataType
        if name == "array":
            found = Array(self._type(joined(path, "element"), depth + 1))
        elif name == "map":
            key = self._type(joined(path, "key"), depth + 1)
            if not self._takes_sign(","):
                raise self._unexpected(f"a comma after the key of {path}")
            found = Map(key, self._type(joined(path, "value"), depth + 1))
        elif self._token.kind == "sign" and self._token.text == ">":
            found = Struct(())
        else:
            found = Struct(self.fields(path, has_colons=True, depth=depth + 1))
        if not self._takes_sign(">"):
            raise self._unexpected(f"> after the {name} of {path}")
        return found

    def _scalar(self, path: str, name: str) -> Scalar:
        known_name(path, name)  # what follows a type that is not supported is its own
        numbers = self._numbers()
        if name == "timestamp" and numbers is None and self._takes_word("without"):
            if not (self._takes_word("time") and self._takes_word("zone")):
                raise self._unexpected("TIME ZONE after WITHOUT")
            name = "timestamp_ntz"
        found = scalar_type(path, name, numbers)
        if name == "string" and self._takes_word("collate"):
            refuse_collation(path, self._name())
        return found

    def _numbers(self) -> list[int] | None:
        if not self._takes_sign("("):
            return None
        numbers = [self._number()]
        while self._takes_sign(","):
            numbers.append(self._number())
        if not self._takes_sign(")"):
            raise self._unexpected(")")
        return numbers

    def _number(self) -> int:
        token = self._token
        if token.kind != "number" or len(token.text) > _DIGITS_MAX:
            raise self._unexpected("a whole number")
        self._next += 1
        return int(token.text)

    def _comment(self) -> str:
        texts = [token.text for token in takewhile(_is_text, self._tokens[self._next :])]
        if not texts:
            raise self._unexpected("a text in quotes after COMMENT")
        self._next += len(texts)
        return "".join(texts)

    def _takes_sign(self, sign: str) -> bool:
        return self._takes("sign", sign)

    def _takes_word(self, word: str) -> bool:
        return self._takes("word", word)

    def _takes(self, kind: str, text: str) -> bool:
        token = self._token
        if token.kind != kind or token.text.lower() != text:
            return False
        self._next += 1
        return True

    def _unexpected(self, wanted: str) -> SchemaError:
        token = self._token
        found = "the end" if token.kind == "end" else f"{token.text[:100]!r} at character {token.position}"
        return SchemaError(f"schema: expected {wanted}, found {found}; write e.g. id bigint, name string")


def _is_text(token: Token) -> bool:
    return token.kind == "text"
