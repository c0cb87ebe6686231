"""Conditions out of their text, in a small part of Spark's SQL:

    condition:  conditions with AND, OR, NOT and parentheses
    term:       COLUMN = 5 (== != <> < <= > >=), or 5 = COLUMN     COLUMN [NOT] BETWEEN 1 AND 5
                COLUMN [NOT] IN (1, 2)                              COLUMN [NOT] LIKE 'begin%'
                COLUMN IS [NOT] NULL                                COLUMN, if it is a boolean

Columns are of the top level, scalars, with exact names; literals are of the column's type (``literals``).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NoReturn

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import Columns, Field, Scalar
from sparklog.model.schema.ddl_text import type_text
from sparklog.model.schema.near_names import not_there
from sparklog.model.schema.paths import quoted
from sparklog.model.schema.predicates.literals import TYPED, value_of
from sparklog.model.schema.predicates.tokens import Token, tokens_of
from sparklog.model.schema.predicates.tree import All, Condition, Either, Operator, Term, Value

TERMS_MAX: Final = 1_000
"""Comparisons with a value, in all of a condition."""
DEPTH_MAX: Final = 32
"""Parentheses within parentheses."""

_SIGNS: Final = {
    "=": Operator.EQUAL, "==": Operator.EQUAL, "!=": Operator.UNEQUAL, "<>": Operator.UNEQUAL,
    "<": Operator.LESS, "<=": Operator.AT_MOST, ">": Operator.GREATER, ">=": Operator.AT_LEAST,
}  # fmt: skip
_ARITHMETIC: Final = ("+", "-", "*", "/", "%")
_WORDS: Final = frozenset({"and", "or", "not", "in", "is", "null", "between", "like", "true", "false"})
"""No name of a column, unless in backticks."""


def parse_condition(text: str, columns: Columns) -> Condition:
    """The condition on rows with these columns. SchemaError with the place and the remedy."""
    return _Parser(tokens_of(text), columns).condition()


class _Parser:
    """``negated`` says whether what is parsed stands within an odd number of NOT."""

    __slots__ = ("_columns", "_next", "_terms", "_tokens")

    def __init__(self, tokens: Sequence[Token], columns: Columns) -> None:
        self._tokens = tokens
        self._next = 0
        self._terms = 0
        self._columns = {column.name: column for column in columns}

    def condition(self) -> Condition:
        found = self._either(1, negated=False)
        if self._token.kind != "end":
            self._refuse("AND, OR or the end")
        return found

    def _either(self, depth: int, *, negated: bool) -> Condition:
        parts = [self._all(depth, negated=negated)]
        while self._takes_word("or"):
            parts.append(self._all(depth, negated=negated))
        return _joined(All if negated else Either, parts)

    def _all(self, depth: int, *, negated: bool) -> Condition:
        parts = [self._one(depth, negated=negated)]
        while self._takes_word("and"):
            parts.append(self._one(depth, negated=negated))
        return _joined(Either if negated else All, parts)

    def _one(self, depth: int, *, negated: bool) -> Condition:
        while self._takes_word("not") or self._takes_sign("!"):
            negated = not negated
        if self._takes_sign("("):
            if depth == DEPTH_MAX:
                raise SchemaError(f"parentheses are more than {DEPTH_MAX} deep; take some out")
            if self._is_word("select"):
                self._refuse("a condition without a subquery")
            found = self._either(depth + 1, negated=negated)
            self._need_sign(")", "AND, OR or )")
            return found
        return self._term(negated=negated)

    def _term(self, *, negated: bool) -> Condition:
        if self._is_literal():
            return self._mirrored(negated=negated)
        column = self._column()
        if operator := self._comparison():
            return self._made(column, operator, [self._value(column)], negated=negated)
        if self._takes_word("is"):
            is_not = self._takes_word("not")
            self._need_word("null", "NULL or NOT NULL")
            return self._made(column, Operator.NULL, [], negated=negated != is_not)
        is_not = self._takes_word("not")
        negated = negated != is_not
        if self._takes_word("in"):
            return self._made(column, Operator.IN, self._values(column), negated=negated)
        if self._takes_word("between"):
            return self._between(column, negated=negated)
        if self._takes_word("like"):
            return self._made(column, Operator.BEGINS, [self._beginning(column)], negated=negated)
        if column.type == Scalar("boolean") and not is_not:
            return self._made(column, Operator.EQUAL, [1], negated=negated)
        self._refuse(f"a comparison of column {quoted(column.name)}")

    def _mirrored(self, *, negated: bool) -> Condition:
        """A term whose literal stands first."""
        start = self._next
        self._pass_literal()
        self._refuse_arithmetic("filter the frame by it")
        operator = self._comparison() or self._refuse("a comparison with a column")
        column = self._column()
        end, self._next = self._next, start
        value = self._value(column)
        self._next = end
        return self._made(column, operator.mirrored, [value], negated=negated)

    def _between(self, column: Field, *, negated: bool) -> Condition:
        least = self._value(column)
        self._need_word("and", "AND")
        parts = [
            self._made(column, Operator.AT_LEAST, [least], negated=negated),
            self._made(column, Operator.AT_MOST, [self._value(column)], negated=negated),
        ]
        return _joined(Either if negated else All, parts)

    def _made(self, column: Field, operator: Operator, values: Sequence[Value], *, negated: bool) -> Term:
        self._terms += max(len(values), 1)
        if self._terms > TERMS_MAX:
            raise SchemaError(
                f"more than {TERMS_MAX:,} comparisons; use BETWEEN, or join the frame with one of the values"
            )
        return Term(column, operator.opposite if negated else operator, tuple(values))

    def _column(self) -> Field:
        token = self._token
        if (token.kind == "word" and token.text.lower() in _WORDS) or token.kind not in ("word", "name"):
            self._refuse("a column")
        self._next += 1
        if token.kind == "word" and self._is_sign("("):
            raise SchemaError(f"{token}: functions have no place here; filter the frame by it")
        column = self._columns.get(token.text)
        if column is None:
            raise SchemaError(not_there([token.text], list(self._columns), "the topic"))
        if self._is_sign("."):
            self._refuse(f"a comparison of column {quoted(column.name)}: fields within it are not compared")
        if not isinstance(column.type, Scalar):
            raise SchemaError(
                f"column {quoted(column.name)} is {type_text(column.type)}: only columns with a single value "
                "are compared; filter the frame by it"
            )
        self._refuse_arithmetic("filter the frame by it")
        return column

    def _comparison(self) -> Operator | None:
        operator = _SIGNS.get(self._token.text) if self._token.kind == "sign" else None
        if operator is not None:
            self._next += 1
        return operator

    def _value(self, column: Field) -> Value:
        sign = next((one for one in "+-" if self._takes_sign(one)), "")
        typed = ""
        if self._token.kind == "word" and self._token.text.lower() in TYPED and self._after.kind == "text":
            typed = self._token.text.lower()
            self._next += 1
        token = self._token
        if token.kind == "word" and token.text.lower() == "null":
            self._refuse("a value: no comparison with NULL is true, write IS NULL")
        if token.kind in ("name", "sign", "end") or (
            token.kind == "word" and token.text.lower() not in ("true", "false")
        ):
            self._refuse(f"a value for column {quoted(column.name)}, no column and no function")
        self._next += 1
        self._refuse_arithmetic("write its result, or filter the frame by it")
        return value_of(column, token, sign=sign, typed=typed)

    def _values(self, column: Field) -> list[Value]:
        self._need_sign("(", "( and values")
        if self._is_word("select"):
            self._refuse("values, no subquery")
        found = [self._value(column)]
        while self._takes_sign(","):
            found.append(self._value(column))
        self._need_sign(")", "a comma or )")
        return found

    def _beginning(self, column: Field) -> Value:
        """The text before the last % of a pattern."""
        token = self._token
        if column.type != Scalar("string"):
            raise SchemaError(f"column {quoted(column.name)} is no string, and LIKE compares strings")
        pattern = token.text
        if token.kind != "text" or not pattern.endswith("%") or any(one in pattern[:-1] for one in "%_\\"):
            self._refuse("LIKE 'begin%', with % at the end alone and without _ and \\")
        self._next += 1
        return value_of(column, replace(token, text=pattern[:-1]))

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    @property
    def _after(self) -> Token:
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)]

    def _is_literal(self) -> bool:
        token = self._token
        if token.kind == "word" and token.text.lower() in TYPED:
            return self._after.kind == "text"
        is_truth = token.kind == "word" and token.text.lower() in ("true", "false")
        return is_truth or token.kind in ("number", "text", "bytes") or token.text in ("+", "-")

    def _pass_literal(self) -> None:
        if self._token.text in ("+", "-") or self._token.text.lower() in TYPED:
            self._next += 1
        self._next = min(self._next + 1, len(self._tokens) - 1)

    def _is_word(self, word: str) -> bool:
        return self._token.kind == "word" and self._token.text.lower() == word

    def _is_sign(self, sign: str) -> bool:
        return self._token.kind == "sign" and self._token.text == sign

    def _takes_word(self, word: str) -> bool:
        found = self._is_word(word)
        self._next += found
        return found

    def _takes_sign(self, sign: str) -> bool:
        found = self._is_sign(sign)
        self._next += found
        return found

    def _need_word(self, word: str, wanted: str) -> None:
        if not self._takes_word(word):
            self._refuse(wanted)

    def _need_sign(self, sign: str, wanted: str) -> None:
        if not self._takes_sign(sign):
            self._refuse(wanted)

    def _refuse_arithmetic(self, remedy: str) -> None:
        if self._token.kind == "sign" and self._token.text in _ARITHMETIC:
            raise SchemaError(f"{self._token}: arithmetic has no place here; {remedy}")

    def _refuse(self, wanted: str) -> NoReturn:
        raise SchemaError(f"expected {wanted}; found {self._token}")


def _joined(kind: type[All] | type[Either], parts: Sequence[Condition]) -> Condition:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))
