"""``sparklog topics alter`` of columns: mixed options are one version; a refusal changes nothing."""

import json

import pytest

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.cli.logs.topics import column_changes
from sparklog.client.topic_schemas import alter_schema, describe_schemas
from sparklog.model.schema.change_texts import parse_change

pytestmark = pytest.mark.integration


@pytest.fixture
def quakes(cluster):
    cluster.create_topic("quakes", schema="id int NOT NULL, mag float, s struct<a: int>", key="id")
    return "quakes"


def test_mixed_options_are_one_version_in_their_order(administer, quakes):
    ran = administer(
        "topics", "alter", quakes, "--add-column", "depth double COMMENT 'km'", "--rename-column", "mag=size",
        "--widen-column", "size double", "--drop-not-null", "id",
        "--add-column", "s.b struct<c: int not null>", "--drop-column", "s.a", "--widen-column", "id bigint",
    )  # fmt: skip
    assert ran.status == DONE, ran.err
    assert ran.out.splitlines() == [
        "topic 'quakes': columns of version 1 -> 2",
        "schema: id bigint, size double, s struct<b: struct<c: int>>, depth double COMMENT 'km'",
        "version: 2",
        "key: id",
        "timestamp: none",
    ]
    assert "note: NOT NULL of b.c is dropped: it holds for columns, not within them" in ran.err
    assert administer("topics describe quakes --schema").out.splitlines() == ran.out.splitlines()[1:]


def test_as_json_it_has_both_versions_and_the_columns(administer, quakes):
    ran = administer("topics", "alter", quakes, "--rename-column", "mag=size", "--json")
    (topic,) = json.loads(ran.out)["topics"]
    assert (topic["name"], topic["schema_version"]) == ("quakes", {"before": 1, "after": 2})
    assert [(one["id"], one["name"]) for one in topic["schema"]["columns"]] == [
        (1, "id"),
        (2, "size"),
        (3, "s"),
    ]


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--add-column", "x"], WRONG_USAGE, "--add-column: column x lacks its type; write e.g. 'x int'"),
        (["--rename-column", "mag"], WRONG_USAGE, "--rename-column: 'mag': write PATH=NAME"),
        (["--drop-column", "mag", "--partitions", "9"], WRONG_USAGE, "columns are changed by themselves"),
        (["--drop-column", "mag", "--config", "retention.ms=1"], WRONG_USAGE, "changed by themselves"),
        (["--drop-column", "mag", "--delete-config", "retention.ms"], WRONG_USAGE, "changed by themselves"),
        ([], WRONG_USAGE, "or a change of columns, such as --add-column 'NAME TYPE'"),
        (["--drop-column", "id"], FAILED, "column id cannot be dropped: it is the topic's key column"),
        (["--add-column", "x int", "--drop-column", "Mag"], FAILED, "no column Mag; did you mean mag?"),
        (["--add-column", "x int NOT NULL"], FAILED, "column x cannot be added as NOT NULL"),
    ],
)
def test_what_cannot_be_changed_is_refused_and_changes_nothing(administer, quakes, options, status, words):
    ran = administer("topics", "alter", quakes, *options)
    assert (ran.status, words in ran.err) == (status, True), ran.err
    assert "version: 1" in administer("topics describe quakes --schema").out


def test_a_change_that_another_overtook_fails_with_the_version_there_is(
    administer, cluster, quakes, monkeypatch
):
    def late(client, topic, known, changes):
        alter_schema(cluster.client, topic, known, [parse_change("add-column", "first int")])
        return alter_schema(client, topic, known, changes)

    monkeypatch.setattr(column_changes, "alter_schema", late)
    ran = administer("topics", "alter", quakes, "--add-column", "second int")
    assert ran.status == FAILED
    assert "there is version 2 now; look at it and change it again" in ran.err
    assert describe_schemas(cluster.client, [quakes])[quakes].version == 2


def test_topics_without_columns_and_missing_ones_are_named(administer, cluster):
    cluster.create_topic("plain")
    untyped = administer("topics", "alter", "plain", "--add-column", "x int")
    assert (untyped.status, "topic 'plain' has no columns" in untyped.err) == (FAILED, True)
    assert administer("topics", "alter", "nowhere", "--add-column", "x int").status == FAILED
