"""Columns on the command line: given at a topic's creation, and shown."""

import json

import pytest

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE

pytestmark = pytest.mark.integration

DDL = "id bigint NOT NULL COMMENT 'x', s struct<a: int>, at timestamp"


@pytest.fixture
def typed(cluster):
    cluster.create_topic("typed", schema=DDL, key="id", timestamp="at")


def test_a_topic_is_created_with_columns_and_shows_them(administer):
    ran = administer(
        "topics", "create", "made", "--partitions", "1", "--replication-factor", "1",
        "--schema", "id bigint NOT NULL, s struct<a int not null>", "--key", "id",
    )  # fmt: skip
    assert ran.status == DONE
    assert "note: NOT NULL of s.a is dropped: it holds for columns, not within them" in ran.err
    shown = administer("topics describe made --schema")
    assert (shown.status, shown.out.splitlines()) == (
        DONE,
        ["schema: id bigint NOT NULL, s struct<a: int>", "version: 1", "key: id", "timestamp: none"],
    )
    assert ", columns: version 1, configs: cleanup.policy=delete" in administer("topics describe made").out


def test_a_topic_is_created_like_another(administer, typed):
    assert administer("topics create like --like typed").status == DONE
    assert administer("topics create keyless --like typed --key at").status == DONE
    shown, original = (administer(f"topics describe {one} --schema").out for one in ("like", "typed"))
    assert shown == original
    assert "key: at" in administer("topics describe keyless --schema").out


def test_a_schema_comes_from_a_file_in_either_notation(administer, tmp_path):
    fields = [{"name": "a", "type": "integer", "nullable": True, "metadata": {}}]
    contents = {"json": json.dumps({"type": "struct", "fields": fields}), "ddl": "-- columns\na int\n"}
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
        assert administer("topics", "create", f"of-{name}", "--schema", f"@{tmp_path / name}").status == DONE
        assert "schema: a int\n" in administer(f"topics describe of-{name} --schema").out


def test_as_json_each_column_has_its_id(administer, cluster, typed):
    cluster.create_topic("plain")
    topics = json.loads(administer("topics describe --json").out)["topics"]
    schemas = {topic["name"]: topic["schema"] for topic in topics}
    assert schemas["plain"] is None
    assert schemas["typed"] == {
        "version": 1,
        "key": "id",
        "timestamp": "at",
        "columns": [
            {"id": 1, "name": "id", "type": "bigint", "nullable": False, "comment": "x"},
            {"id": 2, "name": "s", "type": "struct<a: int>", "nullable": True, "comment": None},
            {"id": 4, "name": "at", "type": "timestamp", "nullable": True, "comment": None},
        ],
    }


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (("--schema", "a xyz"), WRONG_USAGE, "--schema: column a: there is no type 'xyz'"),
        (("--schema", "a int", "--key", "b"), WRONG_USAGE, "--schema: key column b is not in the schema"),
        (("--schema", "@no-such-file"), WRONG_USAGE, "@no-such-file: No such file or directory; give a file"),
        (("--schema", "a int", "--like", "typed"), WRONG_USAGE, "not allowed with argument --schema"),
        (("--key", "a"), WRONG_USAGE, "--key and --timestamp name columns: give --schema or --like too"),
        (("--config", "sparklog.schema=a int"), WRONG_USAGE, "sparklog.schema: use --schema instead"),
        (("--like", "no-such-topic"), FAILED, "topic 'no-such-topic': there is none"),
        (("--like", "plain"), FAILED, "topic 'plain' has no columns; a topic is typed"),
        (("--schema", "a int", "--config", "cleanup.policy=compact"), FAILED, "is always delete"),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_are_refused_with_the_remedy(administer, cluster, options, status, words):
    cluster.create_topic("plain")
    ran = administer("topics", "create", "refused", *options)
    assert (ran.status, ran.out) == (status, "")
    assert words in ran.err
    assert "refused" not in cluster.admin.list_topics()


def test_a_schema_that_is_no_text_is_wrong_usage(administer, tmp_path):
    (tmp_path / "ddl").write_bytes(b"a \xff int")
    ran = administer("topics", "create", "refused", "--schema", f"@{tmp_path / 'ddl'}")
    assert (ran.status, ran.out) == (WRONG_USAGE, "")
    assert f"--schema @{tmp_path / 'ddl'} is no text in UTF-8: byte 2 cannot be read" in ran.err


def test_columns_are_settings_that_never_change(administer, typed):
    rows = administer("configs describe --topic typed").out.splitlines()[1:]
    changes = {row.split()[0]: row.rsplit("  ", 1)[1] for row in rows}
    assert changes == {
        "cleanup.policy": "while it runs",
        "sparklog.key": "never",
        "sparklog.schema": "never",
        "sparklog.timestamp": "never",
    }
    for change in ("--set sparklog.key=s", "--delete sparklog.key"):
        ran = administer(f"configs alter --topic typed {change}")
        assert (ran.status, ran.out) == (WRONG_USAGE, "")
        assert "sparklog.key: a topic has its columns from its creation; leave it as it is" in ran.err


def test_columns_are_shown_of_one_typed_topic(administer, cluster):
    cluster.create_topic("plain")
    ran = administer("topics describe plain --schema")
    assert (ran.status, ran.out) == (FAILED, "")
    assert "topic 'plain' has no columns" in ran.err
    ran = administer("topics describe --schema")
    assert (ran.status, "give its NAME" in ran.err) == (WRONG_USAGE, True)
