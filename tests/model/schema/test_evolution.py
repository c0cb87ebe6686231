"""What may change in a topic's columns: ids are never used again, and old versions stay what they were."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.model.errors import SchemaError
from sparklog.model.schema.change_texts import AddColumn, DropColumn, RenameColumn, SchemaChange, parse_change
from sparklog.model.schema.data_types import Columns, Field, Scalar, Struct, all_fields
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.schema.evolution import VERSION_MAX, changed
from sparklog.model.schema.new_schema import new_schema
from sparklog.model.schema.notation import parse_schema
from tests.model.schema.schema_strategies import data_types, words

DDL = (
    "id int NOT NULL, mag float, day date, at timestamp, cost decimal(6,2), "
    "s struct<a: int, b: array<struct<c: smallint>>>, m map<int, struct<d: tinyint>>, one struct<e: int>"
)


def document(ddl: str = DDL, key: str = "id", timestamp: str = "at") -> SchemaDocument:
    return new_schema(parse_schema(ddl), key, timestamp)


def after(schema: SchemaDocument, *changes: str) -> SchemaDocument:
    """The schema after changes such as "drop-column x", together."""
    return changed(schema, [parse_change(*change.split(" ", 1)) for change in changes])


def newest(schema: SchemaDocument) -> str:
    return ddl_text(schema.at(schema.version))


def ids(columns: Columns) -> list[int]:
    return [field.id for field in all_fields(columns)]


def test_changes_together_are_one_version_and_earlier_ones_stay() -> None:
    schema = document()
    later = after(
        schema,
        "add-column note string COMMENT 'x'",
        "add-column s.b.element.f double",
        "drop-column day",
        "rename-column mag=magnitude",
        "rename-column m.value.d=e",
        "widen-column magnitude double",
        "widen-column m.value.e bigint",
        "widen-column cost decimal(10,3)",
        "widen-column id bigint",
        "drop-not-null id",
    )
    assert (schema.version, later.version) == (1, 2)
    assert newest(later) == (
        "id bigint, magnitude double, at timestamp, cost decimal(10,3), "
        "s struct<a: int, b: array<struct<c: smallint, f: double>>>, m map<int, struct<e: bigint>>, "
        "one struct<e: int>, note string COMMENT 'x'"
    )
    assert ddl_text(later.at(1)) == DDL
    assert SchemaDocument.decode(later.encode()) == later


def test_changes_are_made_in_their_order() -> None:
    later = after(
        document("a int, b int", "", ""), "rename-column a=c", "rename-column b=a", "rename-column c=b"
    )
    assert [(field.id, field.name) for field in later.at(2)] == [(1, "b"), (2, "a")]


def test_a_name_that_was_dropped_comes_back_as_another_column() -> None:
    schema = after(after(document("a int, b int", "", ""), "drop-column b"), "add-column b int")
    assert [field.id for field in schema.at(1)] == [1, 2]
    assert [field.id for field in schema.at(3)] == [1, 3]


def test_earlier_names_of_columns_are_known_until_they_are_taken_again() -> None:
    schema = after(document("a int, b int, c int", "", ""), "rename-column a=x", "rename-column b=y")
    schema = after(schema, "rename-column x=z")
    assert [schema.renamed(version) for version in (1, 2, 3)] == [
        {},
        {"a": "x", "b": "y"},
        {"a": "z", "b": "y", "x": "z"},
    ]
    assert after(schema, "add-column a int", "drop-column y").renamed(4) == {"x": "z"}


def test_values_widen_step_by_step() -> None:
    schema = document("a tinyint, d decimal(4,2)", "", "")
    for name in ("smallint", "int", "bigint"):
        schema = after(schema, f"widen-column a {name}")
    schema = after(schema, "widen-column d decimal(6,2)", "widen-column d decimal(7,3)")
    assert newest(schema) == "a bigint, d decimal(7,3)"
    assert [str(schema.at(version)[0].type) for version in (1, 2, 3, 4, 5)] == [
        "tinyint", "smallint", "int", "bigint", "bigint",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("add-column ID bigint", "column ID: there is id already; case is no difference"),
        ("add-column x int NOT NULL", "column x cannot be added as NOT NULL: it is null in the rows that"),
        ("add-column mag.x int", "column mag.x cannot be added: mag is no struct"),
        ("add-column m.x int", "column m.x cannot be added: m is no struct"),
        ("add-column m.key.x int", "m.key: the key of a map does not change"),
        ("add-column none.x int", "the topic has no column none; did you mean one?"),
        ("add-column _Offset int", "column _Offset: the name is reserved"),
        ("drop-column id", "column id cannot be dropped: it is the topic's key column"),
        ("drop-column at", "column at cannot be dropped: it is the topic's timestamp column"),
        ("drop-column one.e", "column one.e cannot be dropped: it is the last field of its struct"),
        ("drop-column s.b.element.c", "it is the last field of its struct; add another before"),
        ("drop-column s.b.element", "s.b.element is no column and no field of a struct"),
        ("drop-column m.key", "m.key: the key of a map does not change"),
        ("drop-column Mag", "the topic has no column Mag; did you mean mag?"),
        ("drop-column s.b.c", "s.b.c is no column and no field"),
        ("drop-column mag.x", "mag.x is no column and no field"),
        ("drop-column s.a.x.y", "the topic has no column s.a.x: a column with a single value has nothing"),
        ("drop-column s.b.value.c", "the topic has no column s.b.value: an array has element"),
        ("drop-column m.element.d", "the topic has no column m.element: a map has key and value"),
        ("rename-column mag=mag", "column mag has that name already"),
        ("rename-column mag=Id", "column Id: there is id already; case makes no other name"),
        ("rename-column mag=_topic", "column _topic: the name is reserved"),
        ("rename-column m.key=k", "m.key: the key of a map does not change"),
        ("widen-column id bigint NOT NULL", "NOT NULL and comments do not change"),
        ("widen-column id smallint", "column id is int, and cannot be smallint: integers widen upwards"),
        ("widen-column id int", "column id is int already; leave this change out"),
        ("widen-column cost decimal(6,2)", r"column cost is decimal\(6,2\) already; leave this change out"),
        ("widen-column id double", "column id is int, and cannot be double"),
        ("widen-column mag string", "column mag is float, and cannot be string"),
        ("widen-column cost decimal(7,4)", "no fewer digits before and after the point"),
        ("widen-column at timestamp_ntz", "column at is timestamp, and cannot be timestamp_ntz"),
        ("widen-column s struct<a: bigint>", r"column s is struct<.*types that have a single value are"),
        ("widen-column m.key bigint", "m.key: the key of a map does not change"),
        ("drop-not-null mag", "column mag may be null already"),
        ("drop-not-null s.a", "column s.a may be null already"),
    ],
)
def test_what_is_safe_for_no_reader_or_writer_is_refused(change: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        after(document(), change)


@pytest.mark.parametrize(
    ("kind", "wider"), [("float", "double"), ("decimal(4,1)", "decimal(5,1)"), ("date", "timestamp_ntz")]
)
def test_a_key_widens_among_integers_only(kind: str, wider: str) -> None:
    with pytest.raises(SchemaError, match="because it is the key: rows of an equal key would go to another"):
        after(document(f"k {kind}", "k", ""), f"widen-column k {wider}")
    assert newest(after(document("k tinyint", "k", ""), "widen-column k bigint")) == "k bigint"


def test_the_last_column_stays() -> None:
    schema = after(document("a int, b int", "", ""), "drop-column a")
    with pytest.raises(SchemaError, match="column b cannot be dropped: it is the last column"):
        after(schema, "drop-column b")
    assert newest(after(schema, "add-column c int", "drop-column b")) == "c int"


def test_nothing_is_changed_if_one_of_the_changes_is_refused() -> None:
    schema = document()
    with pytest.raises(SchemaError, match="the topic has no column x"):
        after(schema, "drop-column day", "drop-column x")
    assert schema == document()
    for number in (0, 1_001):
        with pytest.raises(SchemaError, match=f"{number} changes: one version has 1 to 1,000"):
            changed(schema, [DropColumn(("day",))] * number)


def test_a_full_document_takes_no_change() -> None:
    schema = document(f"a int COMMENT '{'x' * 99_000}', b int", "", "")
    schema = changed(schema, [AddColumn((), Field("c", Scalar("int"), comment="y" * 99_000))])
    with pytest.raises(
        SchemaError, match=r"would take 203,.* bytes, at most 200,000 are allowed: it is full"
    ):
        changed(schema, [AddColumn((), Field("d", Scalar("int"), comment="z" * 5_000))])
    assert len(after(schema, "drop-column c").encode()) < 200_000  # a smaller change still finds room


def test_limits_of_columns_and_versions_hold() -> None:
    wide = document(", ".join(f"c{nth} int" for nth in range(1_000)), "", "")
    with pytest.raises(SchemaError, match="1,001 columns and fields, at most 1,000"):
        after(wide, "add-column x int")
    assert len(after(wide, "drop-column c7", "add-column x int").at(2)) == 1_000
    with pytest.raises(SchemaError, match="is the last that there can be"):
        after(replace(wide, version=VERSION_MAX), "drop-column c7")


@st.composite
def histories(draw: st.DrawFn) -> list[SchemaDocument]:
    """Documents, each of one change more, drawn among columns and the fields of structs."""
    schemas = [new_schema((Field("first", Scalar("int")), Field("s", Struct((Field("a", Scalar("int")),)))))]
    for _ in range(draw(st.integers(1, 8))):
        columns = schemas[-1].at(schemas[-1].version)
        structs = [column for column in columns if isinstance(column.type, Struct)]
        paths = [(column.name,) for column in columns] + [
            (column.name, field.name)
            for column in structs
            if isinstance(column.type, Struct)
            for field in column.type.fields
        ]
        path = draw(st.sampled_from(paths))
        change: SchemaChange = draw(
            st.builds(AddColumn, st.just(path[:-1]), st.builds(Field, words, data_types))
            | st.just(DropColumn(path))
            | st.builds(RenameColumn, st.just(path), words)
        )
        try:
            schemas.append(changed(schemas[-1], [change]))
        except SchemaError:
            continue
    return schemas


@given(schemas=histories())
def test_no_id_is_used_again_and_no_version_changes_later(schemas: list[SchemaDocument]) -> None:
    last = schemas[-1]
    seen: set[int] = set()
    for version in range(1, last.version + 1):
        columns = last.at(version)
        assert columns == schemas[version - 1].at(version)
        assert len(ids(columns)) == len(set(ids(columns)))
        new = set(ids(columns)) - set(ids(schemas[version - 2].at(version - 1)) if version > 1 else [])
        assert not new & seen
        seen |= set(ids(columns))
    assert max(seen) < last.next_id
    assert SchemaDocument.decode(last.encode()) == last
