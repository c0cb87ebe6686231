"""Records of ``__transaction_state`` in words, as Kafka's ``--transaction-log-decoder`` shows them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparklog.cli.command import DONE
from sparklog.model.write_ids import producer_id_of
from sparklog.records.kafka.encode import Record, build_records_batch
from tests.wire.coordinator_records.golden_transactions import (
    A_ID,
    B_ID,
    COMPLETE_BYTES,
    EMPTY_BYTES,
    KEY_BYTES,
    ONGOING_0_BYTES,
    OURS_BYTES,
)
from tests.wire.coordinator_records.golden_writes import (
    HEAD_BYTES,
    HEAD_KEY_BYTES,
    MEMBER_BYTES,
    MEMBER_KEY_BYTES,
)

Dump = Callable[..., Any]
FIRST = "00000000000000000000"
VALUES = (ONGOING_0_BYTES, OURS_BYTES, COMPLETE_BYTES, EMPTY_BYTES[1], None)
KEY_TEXT = "transaction_metadata::transactionalId=txn"
FIXED = "producerId:4096,producerEpoch:7,"
TIMES = "txnLastUpdateTimestamp=512,txnTimeoutMs=60000"
LINES = [
    f"key: {KEY_TEXT} payload: {FIXED}state=Ongoing,partitions=[a-0,a-3,b-5],{TIMES}",
    f"key: {KEY_TEXT} payload: {FIXED}state=Ongoing,partitions=[a-0,a-3,b-5],{TIMES}",
    f"key: {KEY_TEXT} payload: {FIXED}state=CompleteCommit,partitions=[],{TIMES}",
    f"key: {KEY_TEXT} payload: {FIXED}state=Empty,partitions=[],{TIMES}",
    f"key: {KEY_TEXT} payload: <DELETE>",
]


def segment(make: Any, *records: tuple[bytes | None, bytes | None], topic: str) -> Path:
    log = make.log(f"{topic}-7")
    make.append(log, build_records_batch([Record(*one) for one in records], now_ms=1))
    log.close()
    path: Path = make.root / f"{topic}-7" / f"{FIRST}.log"
    return path


RECORDS = [(KEY_BYTES, value) for value in VALUES]


def test_the_directory_s_name_says_that_records_are_to_be_decoded(dump: Dump, make: Any) -> None:
    ran = dump(segment(make, *RECORDS, topic="__transaction_state"), "--print-data-log")
    assert ran.status == DONE
    assert [line.partition("headerKeys: [] ")[2] for line in ran.lines[3:]] == LINES


def test_the_decoder_decodes_whatever_the_directory_is_named(dump: Dump, make: Any) -> None:
    path = segment(make, *RECORDS, topic="copied")
    ran = dump(path, "--transaction-log-decoder", "--skip-record-metadata")
    assert (ran.lines[3:], ran.err) == ([f"| {line}" for line in LINES], "")
    assert KEY_TEXT not in dump(path, "--print-data-log").out


def test_json_has_the_fields_of_the_record_and_ours(dump: Dump, make: Any) -> None:
    path = segment(make, *RECORDS, topic="__transaction_state")
    ran = dump(path, "--print-data-log", "--json")
    old, ours, _, _, tombstone = ran.json["files"][0]["batches"][0]["records"]
    assert old["key"] == {"type": "0", "data": {"transactionalId": "txn"}}
    assert old["payload"] == {
        "version": "0",
        "data": {
            "producerId": 4096,
            "producerEpoch": 7,
            "transactionTimeoutMs": 60_000,
            "transactionStatus": 1,
            "transactionPartitions": [
                {"topic": "a", "partitionIds": [0, 3]},
                {"topic": "b", "partitionIds": [5]},
            ],
            "transactionLastUpdateTimestampMs": 512,
            "transactionStartTimestampMs": 256,
        },
    }
    assert ours["payload"]["data"]["previousProducerId"] == 4095
    assert ours["payload"]["data"]["lastProducerEpoch"] == 6
    ids = [one["topicId"] for one in ours["payload"]["data"]["transactionPartitions"]]
    assert ids == [str(A_ID), str(B_ID)]
    assert tombstone["payload"] is None


def test_records_of_atomic_writes_are_shown_between_them(dump: Dump, make: Any) -> None:
    records = [
        (HEAD_KEY_BYTES, HEAD_BYTES),
        (MEMBER_KEY_BYTES, MEMBER_BYTES),
        (KEY_BYTES, COMPLETE_BYTES),
        (HEAD_KEY_BYTES, None),
    ]
    path = segment(make, *records, topic="__transaction_state")
    head, member, transaction, tombstone = dump(path, "--print-data-log", "--skip-record-metadata").lines[3:]
    head_key = '{"type":"10000","data":{"appId":"query-7"}}'
    assert head == (
        f'| key: {head_key} payload: {{"version":"0","data":{{"state":"PREPARED_COMMIT","version":9,'
        '"writeNumber":1003,"committedVersion":-1,"timeoutMs":300000,"isPlain":true,"startMs":256,'
        '"lastUpdateMs":512,"winners":[0,2],"abortedRuns":["old","older"],"openedIn":-1}}'
    )
    assert f'"memberNumber":2,"producerId":{producer_id_of(1_003, 2)}}}}} payload: ' in member
    assert member.endswith(
        '"data":{"state":"FINISHED","run":"run","attempt":"a","topics":[{"topic":"orders",'
        '"topicId":"00000000-0000-0000-0000-000000000001","partitions":[0,5]}]}}'
    )
    assert transaction == f"| {LINES[2]}"
    assert tombstone == f"| key: {head_key} payload: <DELETE>"


def test_records_that_nobody_understands_are_named_and_the_others_shown(dump: Dump, make: Any) -> None:
    strange = ((b"\x00\x09key", b"v"), (KEY_BYTES, ONGOING_0_BYTES[:-1]), RECORDS[0])
    path = segment(make, *strange, topic="__transaction_state")
    ran = dump(path, "--print-data-log", "--skip-record-metadata")
    assert ran.status == DONE
    assert ran.lines[3:] == [
        "| key: Error at offset 0, skipping. a key of version 9",
        "| key: Error at offset 1, skipping. a transactional id's state of version 0 that is malformed",
        f"| {LINES[0]}",
    ]
