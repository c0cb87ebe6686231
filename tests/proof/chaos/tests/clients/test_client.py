"""What a client writes down of what it sends and is given."""

import json
import threading
import time
from random import Random

import pytest
from kafka.errors import KafkaConnectionError, NodeNotReadyError, NotLeaderForPartitionError
from kafka.record import default_records

from chaos.access import Access
from chaos.clients import kafka_python_client
from chaos.clients.client_parts import Numbers, Settings, begin_send, value_of, where_earlier_lives_stopped
from histories import Writer
from sparklog.testing import InProcessCluster


def _sent(tmp_path, compacted, count=200):
    settings = Settings(
        "producer", "confluent", "p", Access(""), {"t": 1}, str(tmp_path), 1, compacted=compacted
    )
    path, numbers, rng = tmp_path / "history.jsonl", Numbers("p#0"), Random(1)
    with Writer(path) as writer:
        records = [begin_send(settings, writer, numbers, "t", 0, rng)[1] for _ in range(count)]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return records, [line for line in lines if line["f"] == "send"]


def test_records_of_a_compacted_topic_have_the_historys_keys_and_tombstones(tmp_path):
    records, lines = _sent(tmp_path, ["t"])
    assert [record.key.decode() for record in records] == [line["key"] for line in lines]
    assert [record.value is None for record in records] == [line.get("tombstone", False) for line in lines]
    assert 0 < sum(record.value is None for record in records) < len(records)


def test_a_reader_knows_every_record_by_its_value_or_a_tombstone_by_its_header(tmp_path):
    records, lines = _sent(tmp_path, ["t"])
    assert [value_of(record.value, record.headers) for record in records] == [line["value"] for line in lines]


def test_records_of_other_topics_have_no_key_in_the_history(tmp_path):
    records, lines = _sent(tmp_path, [])
    assert not any("key" in line or "tombstone" in line for line in lines)
    assert all(record.value is not None for record in records)


def test_a_tailing_client_goes_on_where_its_earlier_lives_stopped(tmp_path):
    with Writer(tmp_path / "tail-0.jsonl") as writer:
        writer.seek("tail/0", "plain", 0, 5)
        writer.seek("tail/0", "plain", 1, 7)
        writer.polled("tail/0", "plain", 0, 5, [(5, "a"), (6, "b")])
    with Writer(tmp_path / "tail-1.jsonl") as writer:
        writer.seek("tail/1", "plain", 0, 40)
    with (tmp_path / "tail-1.jsonl").open("a") as cut_off:
        cut_off.write('{"t_ns":1,"process":"tail/1","type":"ok","f":"seek","topic":"pla')
    assert where_earlier_lives_stopped(tmp_path, "tail/3") == {("plain", 0): 40, ("plain", 1): 7}
    assert where_earlier_lives_stopped(tmp_path, "tail/0") == {}


@pytest.mark.integration
def test_a_producer_whose_library_gave_up_for_good_is_replaced_by_another(tmp_path, monkeypatch):
    """kafka-python answers every send of an idempotent producer with the CRC that was wrong once."""
    crc, sent = default_records.calc_crc32c, []

    def wrong_once(data):
        sent.append(crc(data))
        return sent[-1] ^ (len(sent) == 3)

    monkeypatch.setattr(default_records, "calc_crc32c", wrong_once)
    path = tmp_path / "history.jsonl"
    with InProcessCluster(brokers=1) as cluster, Writer(path) as writer:
        cluster.create_topic("t", partitions=1, replication_factor=1)
        settings = Settings(
            "producer",
            "kafka-python",
            "p",
            Access(cluster.bootstrap_servers),
            {"t": 1},
            "",
            1,
            idempotent=True,
        )
        thread = threading.Thread(target=kafka_python_client.produce, args=(settings, writer))
        thread.start()
        deadline = time.monotonic() + 60
        while path.read_text().count('"session":"p#1"') < 20 and time.monotonic() < deadline:
            time.sleep(0.05)
        settings.is_stopping = True
        thread.join()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    sessions = {line["op"]: line["session"] for line in lines if line["type"] == "invoke"}
    fates = {
        (sessions[line["op"]], line["type"]) for line in lines if line.get("op") and "session" not in line
    }
    assert fates == {("p#0", "ok"), ("p#0", "info"), ("p#1", "ok")}
    assert any("CorruptRecordError" in line.get("error", "") for line in lines)


def test_a_reader_that_reaches_nobody_for_a_while_ends(monkeypatch):
    monkeypatch.setattr(kafka_python_client, "NOBODY_S", 0.0)
    reach = kafka_python_client.Reach()
    reach.note(NotLeaderForPartitionError())  # somebody said so
    with pytest.raises(SystemExit, match="it has reached no broker for 0 s"):
        reach.note(NodeNotReadyError("No node_id provided"))


def test_a_reader_whom_somebody_answered_in_the_meantime_goes_on(monkeypatch):
    reach = kafka_python_client.Reach()
    reach.note(KafkaConnectionError("111 ECONNREFUSED"))
    monkeypatch.setattr(kafka_python_client, "NOBODY_S", 0.05)
    time.sleep(0.06)
    reach.note(None)
    reach.note(KafkaConnectionError("111 ECONNREFUSED"))
