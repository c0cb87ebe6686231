"""Conditions on rows: what their text may be, and what is refused, with a place and a remedy."""

import pytest

from sparklog.model.errors import SchemaError
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.predicates.parser import TERMS_MAX, parse_condition
from sparklog.model.schema.predicates.tree import All, Condition, Either, Term

COLUMNS = parse_ddl(
    "id bigint, tiny tinyint, mag double, price decimal(9,2), name string, raw binary, ok boolean, day date, "
    "at timestamp, local timestamp_ntz, `a b` int, s struct<a: int>"
)


def parsed(text: str) -> str:
    """The condition in one form: a term as its column, sign and values."""
    return shown(parse_condition(text, COLUMNS))


def shown(condition: Condition) -> str:
    match condition:
        case Term(column, operator, values):
            return " ".join([column.name, operator.value, *map(repr, values)])
        case All(parts):
            return f"({' & '.join(map(shown, parts))})"
        case Either(parts):
            return f"({' | '.join(map(shown, parts))})"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("mag > 5 and id <> -3", "(mag > 5.0 & id != -3)"),
        ("MAG is null", None),
        ("`a b`==1 or `mag`<=.5e1 and tiny!=+7", "(a b = 1 | (mag <= 5.0 & tiny != 7))"),
        ("5 < mag", "mag > 5.0"),
        ("DATE '1970-01-03' >= day", "day <= 2"),
        ("not (mag > 5 or name is null)", "(mag <= 5.0 & name is not null)"),
        ("NOT NOT ok", "ok = 1"),
        ("! ok", "ok != 1"),
        ("ok = false", "ok = 0"),
        ("id between 1 and 3 and id not between 5 and 6", "((id >= 1 & id <= 3) & (id < 5 | id > 6))"),
        ("id in (1, 2) and id not in (3)", "(id in 1 2 & id not in 3)"),
        ("name = 'it''s \\'\\u00e4'", "name = b\"it's '\\xc3\\xa4\""),
        ("name like 'x%' and not name like '%'", "(name like b'x' & name not like b'')"),
        ("raw = X'00fF'", r"raw = b'\x00\xff'"),
        ("price = -1.5 and price in (2, 0.10)", "(price = -150 & price in 200 10)"),
        ("mag = 'NaN' or mag < '-Infinity'", "(mag = nan | mag < -inf)"),
        ("day = '1969-12-31'", "day = -1"),
        ("at > '1970-01-01T00:00:01Z'", "at > 1000000"),
        ("at > TIMESTAMP '1970-01-01 01:00:00.000001+01:00'", "at > 1"),
        (
            "local <= '1970-01-01 00:00:01' or local = '1970-01-02'",
            "(local <= 1000000 | local = 86400000000)",
        ),
    ],
)
def test_a_condition_is_read_as_spark_reads_it(text: str, meaning: str | None) -> None:
    if meaning is None:
        with pytest.raises(SchemaError, match=r"no column MAG \(near mag\)"):
            parsed(text)
    else:
        assert parsed(text) == meaning


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("depth > 1", r"no column depth in the topic, which has id, .*`a b`, s: correct the name"),
        ("nam = 'x'", r"no column nam \(near name\)"),
        ("s.a > 1", "fields within it are not compared"),
        ("s is null", "column s is struct<a: int>: only columns with a single value"),
        ("id = 1.5", r"1\.5 at character 6 is no value of column id, a bigint: write a whole number from -9"),
        ("tiny = 128", "write a whole number from -128 to 127"),
        ("id = 1e3", "no value of column id"),
        ("id = '5'", "'5' at character 6 is no value of column id"),
        ("name = 5", "5 at character 8 is no value of column name, a string: write 'text'"),
        ("name = '\\ud800'", "is no value of column name"),
        ("mag = 'x'", "write 5.25, 5e-3 or 'NaN'"),
        ("mag = 5d", "the number at character 7 ends in another character"),
        ("price = 1.005", "at most 7 digits before the point and 2 after it"),
        ("price = 12345678", "at most 7 digits before"),
        ("day = '2024-02-30'", "write '2024-02-29'"),
        ("day = '20240229'", "write '2024-02-29'"),
        ("at > '2024-01-01T00:00:00'", r"a timestamp: write '2024-02-29T12:00:00Z' or with \+01:00"),
        ("at > '2024-01-01'", "does not know the session's zone"),
        ("local > '2024-01-01T00:00:00Z'", "without a zone"),
        ("at > DATE '2024-01-01'", "DATE '2024-01-01' at character 11 is no value of column at"),
        ("raw = '00'", "write X'00FF'"),
        ("ok > 1", "write true"),
        ("mag > id", "a value for column mag, no column and no function; found 'id' at character 7"),
        ("mag > 1 + 1", r"'\+' at character 9: arithmetic has no place here; write its result"),
        ("mag + 1 > 1", r"'\+' at character 5: arithmetic has no place here; filter the frame by it"),
        ("1 - mag > 1", "'-' at character 3: arithmetic has no place here; filter the frame by it"),
        ("mag = null", "write IS NULL"),
        ("mag <=> 5", "a comparison of column mag; found '<=>'"),
        ("abs(mag) > 1", "functions have no place here"),
        ("id in (select id from t)", "values, no subquery; found 'select'"),
        ("id = (select 1)", "a value for column id"),
        ("(select 1) = id", "without a subquery"),
        ("exists (select 1)", "functions have no place here"),
        ("id in ()", "a value for column id"),
        ("id in (1", r"a comma or \); found the end"),
        ("id between 1", "expected AND; found the end"),
        ("id not 5", "a comparison of column id"),
        ("name like 'x'", "LIKE 'begin%'"),
        ("name like 'x_%'", "LIKE 'begin%'"),
        ("name like '%x%'", "LIKE 'begin%'"),
        ("id like '1%'", "column id is no string"),
        ("mag", "a comparison of column mag; found the end"),
        ("and", "expected a column; found 'and'"),
        ("mag > 5 mag", "AND, OR or the end; found 'mag'"),
        ("(mag > 5", r"AND, OR or \); found the end"),
        ("mag > 5)", r"AND, OR or the end; found '\)'"),
        ("", "expected a column; found the end"),
        ('name = "x"', "texts stand in single quotes, names in backticks"),
        ("name = 'x", "' at character 8 has no second one"),
        ("`a b", "` at character 1 has no second one"),
        ("mag > 5; drop table t", "';' at character 8 has no meaning"),
        ("5 > 4", "expected a column; found '4'"),
        ("-", "a comparison with a column; found the end"),
        ("(" * 40 + "ok" + ")" * 40, "more than 32 deep"),
        (" or ".join(["ok"] * (TERMS_MAX + 1)), "more than 1,000 comparisons"),
        (f"id in ({', '.join(['1'] * (TERMS_MAX + 1))})", "more than 1,000 comparisons"),
        ("ok" + " " * 200_000, "at most 200,000 are allowed"),
    ],
)  # fmt: skip
def test_what_is_no_condition_is_refused(text: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        parsed(text)


def test_many_terms_are_read_in_a_row_and_many_negations() -> None:
    assert parsed(" or ".join(["ok"] * TERMS_MAX)).count("|") == TERMS_MAX - 1
    assert parsed("not " * 1_001 + "ok") == "ok != 1"
