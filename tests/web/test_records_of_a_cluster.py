"""Records, topics and groups over real brokers, whatever clients have written."""

import base64
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import confluent_kafka
import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from sparklog.client.coordinator import Coordinator
from sparklog.client.group.committed_offsets import commit_offsets
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from sparklog.web.page_app import build_app
from sparklog.web.page_settings import PageSettings
from sparklog.web.page_viewers import OneViewer
from sparklog.web.viewer import Viewer
from tests.waiting import until

pytestmark = pytest.mark.integration

Ask = Callable[..., Any]
LONG = b"\xf0\x9f\x98\x80" + bytes(range(256)) * 3_600
"""900 KB that are no UTF-8."""


@pytest.fixture(scope="module", autouse=True)
def written(cluster: InProcessCluster) -> int:
    """Topics with records; the moment between the earlier and the later ones of ``seen``, in milliseconds."""
    cluster.create_topic("seen", partitions=3)
    cluster.produce("seen", [(f"early-{number}", f"value {number}") for number in range(300)])
    time.sleep(0.002)
    moment_ms = time.time_ns() // 1_000_000
    time.sleep(0.002)
    cluster.produce("seen", [("late", '{"found": "Nadel"}')], partition=1)
    cluster.create_topic("odd", partitions=1)
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce("odd", None, None, headers=[("<script>", b"\xff"), ("none", None), ("\u202ertl", b"")])
    producer.produce("odd", b"", b"")
    producer.produce("odd", LONG, b'"quoted" & <b>\'')
    producer.flush(30)
    return moment_ms


def values(found: Any) -> list[bytes]:
    return [base64.b64decode(record["value"]["base64"]) for record in found["records"]]


def test_the_newest_records_come_first_and_more_follow_until_none_is_left(ask: Ask) -> None:
    found = ask("/topics/seen/records?limit=7")
    assert values(found)[0] == b'{"found": "Nadel"}'
    assert (found["total"], found["left"]) == (301, 294)
    places = [(record["partition"], record["offset"]) for record in found["records"]]
    while found["left"]:
        found = ask(f"/topics/seen/records?limit=100&at={found['next']}")
        places += [(record["partition"], record["offset"]) for record in found["records"]]
    assert len(places) == len(set(places)) == 301


def test_records_are_found_from_a_time_on(ask: Ask, written: int) -> None:
    assert values(ask(f"/topics/seen/records?from=time&time={written}")) == [b'{"found": "Nadel"}']
    assert ask("/topics/seen/records?from=time&time=253402300799999")["records"] == []
    assert ask("/topics/seen/records?from=time&time=0&limit=200")["left"] == 101


def test_a_time_after_the_last_record_leaves_nothing_to_look_at(ask: Ask) -> None:
    found = ask("/topics/seen/records?from=time&time=253402300799999")
    assert (found["ahead"], found["left"], found["missing"]) == (0, 0, None)


@pytest.mark.parametrize("begin", ["time", "offset"])
def test_who_begins_at_a_time_or_offset_and_gives_none_gets_no_records(ask: Ask, begin: str) -> None:
    found = ask(f"/topics/seen/records?from={begin}")
    assert (found["records"], found["left"], found["missing"]) == ([], 0, begin)
    given = ask(f"/topics/seen/records?from={begin}&{begin}=0")
    assert (len(given["records"]), given["ahead"], given["missing"]) == (50, 301, None)
    after = ask(f"/topics/seen/records?from={begin}&at={given['next']}")
    assert (len(after["records"]), after["missing"]) == (50, None)


def test_offsets_beyond_both_ends_are_the_ends(ask: Ask) -> None:
    found = ask("/topics/seen/records?from=offset&offset=5&partition=2&limit=3")
    assert [(one["partition"], one["offset"]) for one in found["records"]] == [(2, 5), (2, 6), (2, 7)]
    beyond = ask(f"/topics/seen/records?from=offset&offset={2**63 - 1}&partition=2")
    assert (beyond["records"], beyond["left"]) == ([], 0)


def test_a_text_is_looked_for_by_the_server_in_the_whole_topic(ask: Ask) -> None:
    found = ask("/topics/seen/records?text=nadel")
    assert (values(found), found["left"]) == ([b'{"found": "Nadel"}'], 0)
    keys = ask("/topics/seen/records?from=oldest&text=EARLY-17&limit=200")["records"]
    assert len(keys) == 11
    assert ask("/topics/seen/records?text=nowhere")["records"] == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("from=elsewhere", "from='elsewhere' is none of newest, oldest, offset, time"),
        ("partition=3", "partition=3: seen has 0 to 2"),
        ("partition=x", "partition='x' is no whole number"),
        ("offset=-1&from=offset", "offset=-1: from 0"),
        ("limit=0", "limit=0: from 1 to 200"),
        ("limit=100000", "limit=100000: from 1 to 200"),
        ("at=1;2", "at='1;2' is no place"),
        (f"text={'x' * 251}", "text: 251 characters"),
        ("from=time&time=9999999999999999", "time=9999999999999999: from 0"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_with_its_value(ask: Ask, query: str, words: str) -> None:
    assert words in ask(f"/topics/seen/records?{query}", 400)["error"]


def test_bytes_come_as_they_are_and_a_long_value_comes_cut(ask: Ask) -> None:
    found = ask("/topics/odd/records?from=oldest")["records"]
    assert [found[0]["key"], found[0]["value"]] == [None, None]
    assert [(one["key"], one["value"]) for one in found[0]["headers"]] == [
        ("<script>", {"size": 1, "base64": "/w=="}),
        ("none", None),
        ("\u202ertl", {"size": 0, "base64": ""}),
    ]
    assert found[1]["value"] == {"size": 0, "base64": ""}
    assert found[2]["value"]["size"] == len(LONG)
    assert len(base64.b64decode(found[2]["value"]["base64"])) == 1_024
    whole = ask("/topics/odd/records?from=offset&offset=2&limit=1&whole=true")["records"][0]
    assert len(base64.b64decode(whole["value"]["base64"])) == 256 * 1024


def test_a_record_is_downloaded_as_octets_and_whole(browser: TestClient) -> None:
    kept = browser.get("/api/topics/odd/records/0/2/value")
    assert kept.content == LONG
    assert kept.headers["content-type"] == "application/octet-stream"
    assert kept.headers["content-disposition"] == 'attachment; filename="odd-0-2.value"'
    assert browser.get("/api/topics/odd/records/0/2/key").content == b'"quoted" & <b>\''
    for path in ("0/0/value", "0/99/value", "7/0/value", "0/2/header"):
        assert browser.get(f"/api/topics/odd/records/{path}").status_code == 404


def test_what_lies_between_records_is_named(ask: Ask, cluster: InProcessCluster) -> None:
    cluster.create_topic("aborted", partitions=1)
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "page-tests"}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(30)
    for value, is_kept in ((b"kept", True), (b"given up", False), (b"kept too", True)):
        producer.begin_transaction()
        producer.produce("aborted", value)
        producer.flush(30)
        (producer.commit_transaction if is_kept else producer.abort_transaction)(30)
    found = ask("/topics/aborted/records?from=oldest")
    assert values(found) == [b"kept", b"kept too"]
    assert [(gap["begin"], gap["end"], gap["reason"]) for gap in found["gaps"]] == [
        (1, 2, "marker"),
        (2, 3, "aborted"),
        (3, 4, "marker"),
        (5, 6, "marker"),
    ]


def test_an_open_transaction_is_named_and_holds_readers_back(ask: Ask, cluster: InProcessCluster) -> None:
    cluster.create_topic("held", partitions=1)
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "page-tests-open"}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("held", b"not yet")
    producer.flush(30)
    found = ask("/topics/held")
    assert [(one["transactional_id"], one["open_since"]) for one in found["open"]] == [("page-tests-open", 0)]

    def marks() -> tuple[int, int]:
        row = ask("/topics/held")["rows"][0]
        return row["last_stable_offset"], row["high_watermark"]

    until(lambda: marks() == (0, 1), "the leader to answer, which a busy machine delays")
    assert ask("/topics/held/records")["records"] == []
    producer.abort_transaction(30)
    assert ask("/topics/held")["open"] == []


def test_rows_of_a_typed_topic_have_the_key_and_the_value_that_kafkas_clients_get(
    ask: Ask, browser: TestClient, cluster: InProcessCluster
) -> None:
    schema = "id bigint NOT NULL, name string, raw binary, at timestamp"
    cluster.create_topic("typed", partitions=1, schema=schema, key="id")
    columns = {
        "id": pa.array([1, 2**62], pa.int64()),
        "name": pa.array(["Zoë", None], pa.string()),
        "raw": pa.array([b"\x00\xff", b""], pa.binary()),
        "at": pa.array([1_517_445_180_000_000, None], pa.timestamp("us", "UTC")),
    }
    cluster.produce("typed", pa.table(columns))
    found = ask("/topics/typed/records?from=oldest")
    assert found["is_typed"]
    shown = [
        (base64.b64decode(one["key"]["base64"]), value)
        for one, value in zip(found["records"], values(found), strict=True)
    ]
    assert shown == [
        (b"1", '{"id":1,"name":"Zoë","raw":"AP8=","at":"2018-02-01T00:33:00.000000Z"}'.encode()),
        (b"4611686018427387904", b'{"id":4611686018427387904,"raw":""}'),
    ]
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": "g",
        "auto.offset.reset": "earliest",
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition("typed", 0, 0)])
    got = consumer.consume(2, 30)
    consumer.close()
    assert shown == [(record.key(), record.value()) for record in got]
    assert len(ask("/topics/typed/records?text=zoë")["records"]) == 1
    assert browser.get("/api/topics/typed/records/0/0/value").content == shown[0][1]


def test_a_typed_topic_without_a_key_column_has_records_without_keys(
    ask: Ask, cluster: InProcessCluster
) -> None:
    cluster.create_topic("keyless", partitions=1, schema="id bigint NOT NULL")
    cluster.produce("keyless", pa.table({"id": pa.array(range(3_000), pa.int64())}))
    found = ask("/topics/keyless/records?from=newest&limit=2")
    assert [record["key"] for record in found["records"]] == [None, None]
    assert values(found) == [b'{"id":2999}', b'{"id":2998}']


def test_one_topic_shows_offsets_sizes_settings_and_readers(ask: Ask, cluster: InProcessCluster) -> None:
    commit_offsets(
        Coordinator(cluster.client, "a/../b <&>"),
        {TopicPartition("seen", 0): 1, TopicPartition("seen", 1): 2},
    )
    found = ask("/topics/seen")
    assert sum(row["high_watermark"] for row in found["rows"]) == 301
    assert all(row["log_end_offset"] == row["last_stable_offset"] for row in found["rows"])
    assert all(sorted(row["isr"]) == [1, 2, 3] and row["size_bytes"] > 0 for row in found["rows"])
    assert {"name": "cleanup.policy", "value": "delete", "source": "default", "is_default": True} in found[
        "settings"
    ]
    (reader,) = found["readers"]
    assert reader["group_id"] == "a/../b <&>"
    ends = {row["partition"]: row["high_watermark"] for row in found["rows"]}
    assert reader["lag"] == ends[0] - 1 + ends[1] - 2


def test_groups_are_listed_by_lag_and_one_of_any_name_is_described(
    ask: Ask, cluster: InProcessCluster
) -> None:
    commit_offsets(Coordinator(cluster.client, "done"), {TopicPartition("odd", 0): 3})
    commit_offsets(Coordinator(cluster.client, "far/behind"), {TopicPartition("seen", 2): 0})
    rows = ask("/groups?search=far")["rows"]
    assert [row["group_id"] for row in rows] == ["far/behind"]
    assert rows[0]["worst"] == "seen-2"
    names = [row["group_id"] for row in ask("/groups")["rows"]]
    assert names.index("far/behind") < names.index("done")
    one = ask(f"/groups?group={quote('far/behind', safe='')}")
    assert (one["group_id"], one["state"], one["member_count"]) == ("far/behind", "Empty", 0)
    assert one["rows"][0]["lag"] == one["lag"] == rows[0]["lag"]
    assert "there is no group 'none'" in ask("/groups?group=none", 404)["error"]


def test_a_commit_is_shown_in_the_words_of_dump_log(ask: Ask, cluster: InProcessCluster) -> None:
    commit_offsets(Coordinator(cluster.client, "decoded"), {TopicPartition("odd", 0): 2})
    decoded = [
        record["decoded"] for record in ask("/topics/__consumer_offsets/records?text=decoded")["records"]
    ]
    assert any(one and '"group":"decoded"' in one["key"] and '"offset":2' in one["value"] for one in decoded)


@pytest.mark.parametrize("name", ["nope", "..", "a b", "<script>", "x" * 300])
def test_a_topic_that_is_not_there_is_said_not_to_be_there(ask: Ask, name: str) -> None:
    for path in (f"/topics/{quote(name, safe='')}", f"/topics/{quote(name, safe='')}/records"):
        if name != "..":
            assert "there is no topic" in ask(path, 404)["error"]


def test_a_page_that_may_show_no_records_shows_none(cluster: InProcessCluster) -> None:
    viewer = Viewer(cluster.client, options="--root /data")
    closed = TestClient(
        build_app(OneViewer(viewer), PageSettings(shows_records=False)), base_url="http://localhost"
    )
    for path in ("seen/records", "seen/records/0/0/value"):
        refused = closed.get(f"/api/topics/{path}")
        assert (refused.status_code, "web.records=false" in refused.json()["error"]) == (403, True)
    assert closed.get("/api/topics/seen").status_code == 200
