"""Segments: every batch, and on request every record, in the lines of Kafka's DumpLogSegments."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE

Dump = Callable[..., Any]
FIRST = "00000000000000000000"

BATCH = (
    "baseOffset: {base} lastOffset: {last} count: {count} baseSequence: {sequence} "
    "lastSequence: {last_sequence} producerId: {producer} producerEpoch: {producer_epoch} "
    "partitionLeaderEpoch: {epoch} isTransactional: {transactional} isControl: {control} "
    "deleteHorizonMs: {horizon} position: {position} "
    "{time}: {timestamp} size: {size} magic: 2 compresscodec: {codec} crc: {crc} isvalid: {valid}"
)
PLAIN: dict[str, object] = {
    "sequence": -1,
    "last_sequence": -1,
    "producer": -1,
    "producer_epoch": -1,
    "epoch": 0,
    "transactional": "false",
    "control": "false",
    "horizon": "OptionalLong.empty",
    "time": "CreateTime",
    "codec": "none",
    "valid": "true",
}


def line(**fields: object) -> str:
    return BATCH.format(**{**PLAIN, **fields})


def without_crc(text: str) -> str:
    return re.sub(r"crc: \d+", "crc: *", text)


def test_every_batch_is_a_line(dump: Dump, make: Any, batches: SimpleNamespace) -> None:
    log = make.log()
    make.append(log, batches.records(5))
    make.append(
        log,
        batches.records(2, producer_id=11, producer_epoch=3, base_sequence=2**31 - 1, is_transactional=True),
        epoch=4,
    )
    log.close()
    path = make.root / "orders-0" / f"{FIRST}.log"
    ran = dump(path)
    assert (ran.status, ran.err) == (DONE, "")
    t0 = batches.T0
    assert ran.lines == [
        f"Dumping {path}",
        "Log starting offset: 0",
        line(base=0, last=4, count=5, position=0, timestamp=t0 + 4, size=154, crc=2238268847),
        line(
            base=5,
            last=6,
            count=2,
            sequence=2147483647,
            last_sequence=0,
            producer=11,
            producer_epoch=3,
            epoch=4,
            transactional="true",
            position=154,
            timestamp=t0 + 1,
            size=109,
            crc=919888661,
        ),
    ]


def test_deep_iteration_shows_every_record(dump: Dump, make: Any, batches: SimpleNamespace) -> None:
    log = make.log()
    make.append(log, batches.records(5, producer_id=9, producer_epoch=0, base_sequence=2**31 - 2))
    log.close()
    ran = dump(make.root / "orders-0" / f"{FIRST}.log", "--deep-iteration")
    assert ran.lines[3:] == [
        "| offset: 0 CreateTime: 1700000000000 keySize: -1 valueSize: 7 sequence: 2147483646 headerKeys: []",
        "| offset: 1 CreateTime: 1700000000002 keySize: 5 valueSize: 7 sequence: 2147483647 "
        "headerKeys: [trace,über]",
        "| offset: 2 CreateTime: 1700000000004 keySize: 5 valueSize: 7 sequence: 0 headerKeys: []",
        "| offset: 3 CreateTime: 1700000000001 keySize: -1 valueSize: 7 sequence: 1 headerKeys: []",
        "| offset: 4 CreateTime: 1700000000003 keySize: 5 valueSize: -1 sequence: 2 headerKeys: []",
    ]


def test_print_data_log_shows_keys_and_values(dump: Dump, make: Any, batches: SimpleNamespace) -> None:
    log = make.log()
    make.append(log, batches.records(5))
    log.close()
    path = make.root / "orders-0" / f"{FIRST}.log"
    lines = dump(path, "--print-data-log").lines[3:]
    assert lines[0].endswith("headerKeys: [] payload: value-0")
    assert lines[1].endswith("headerKeys: [trace,über] key: key-1 payload: value-1")
    assert lines[4].endswith("headerKeys: [] key: key-4")
    assert dump(path, "--print-data-log", "--skip-record-metadata").lines[3:] == [
        " payload: value-0",
        "| key: key-1 payload: value-1",
        "| key: key-2 payload: value-2",
        " payload: value-3",
        "| key: key-4",
    ]


def test_bytes_that_are_not_text_are_shown_with_replacements(
    dump: Dump, make: Any, batches: SimpleNamespace
) -> None:
    from sparklog.records.kafka.encode import Record, build_records_batch

    log = make.log()
    make.append(log, build_records_batch([Record(b"\xff", b"\xc3\x28")], now_ms=1))
    log.close()
    path = make.root / "orders-0" / f"{FIRST}.log"
    assert dump(path, "--print-data-log").lines[-1].endswith("key: � payload: �(")
    (record,) = dump(path, "--print-data-log", "--json").json["files"][0]["batches"][0]["records"]
    assert (record["key_base64"], record["payload_base64"]) == ("/w==", "wyg=")


def test_markers_say_what_they_end(dump: Dump, make: Any, batches: SimpleNamespace) -> None:
    log = make.log()
    make.append(log, *(batches.marker(kind, 11) for kind in (0, 1, 2, 3, 77)))
    log.close()
    ran = dump(make.root / "orders-0" / f"{FIRST}.log", "--print-data-log")
    head = "CreateTime: 1700000000000 keySize: 4 valueSize: 6 sequence: -1 headerKeys: []"
    assert ran.status == DONE
    assert [text for text in ran.lines if text.startswith("|")] == [
        f"| offset: 0 {head} endTxnMarker: ABORT coordinatorEpoch: 3",
        f"| offset: 1 {head} endTxnMarker: COMMIT coordinatorEpoch: 3",
        f"| offset: 2 {head} controlType: LEADER_CHANGE(2)",
        f"| offset: 3 {head} controlType: SNAPSHOT_HEADER(3)",
        f"| offset: 4 {head} controlType: UNKNOWN(77)",
    ]
    assert all("isTransactional: true isControl: true" in text for text in ran.lines if "base" in text)


def test_what_compaction_leaves_is_shown_and_no_failure(
    dump: Dump, make: Any, batches: SimpleNamespace
) -> None:
    log = make.log()
    make.append(log, batches.compacted(3))
    log.close()
    path = make.root / "orders-0" / f"{FIRST}.log"
    ran = dump(path, "--deep-iteration")
    assert "lastOffset: 5 count: 3 " in ran.out
    assert f"deleteHorizonMs: OptionalLong[{batches.T0 - 5}]" in ran.out
    assert [text.split()[2] for text in ran.lines[3:]] == ["0", "2", "4"]
    assert ran.status == DONE
    assert ran.err == (f"Non-consecutive offsets in {path}\n  0 is followed by 2\n  2 is followed by 4\n")


def test_log_append_time_is_every_records_time(dump: Dump, make: Any, batches: SimpleNamespace) -> None:
    log = make.log()
    make.append(log, batches.log_append_time(2))
    log.close()
    lines = dump(make.root / "orders-0" / f"{FIRST}.log", "--deep-iteration").lines
    assert f" LogAppendTime: {batches.T0} size: " in lines[2]
    assert lines[3].startswith(f"| offset: 0 LogAppendTime: {batches.T0} keySize: -1 valueSize: 1 ")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_named_and_opened(codec: str, dump: Dump, make: Any) -> None:
    path = make.records_log() / f"{FIRST}.log"
    ran = dump(path, "--deep-iteration")
    assert ran.status == DONE
    assert f"compresscodec: {codec} " in ran.out
    assert sum(text.startswith("| offset: ") for text in ran.lines) == 355


def test_arrow_batches_show_their_header_and_columns(dump: Dump, make: Any, batches: SimpleNamespace) -> None:
    log = make.log()
    make.append(log, batches.arrow(5, producer_id=5, producer_epoch=0, base_sequence=0))
    log.close()
    path = make.root / "orders-0" / f"{FIRST}.log"
    ran = dump(path)
    assert (ran.status, ran.err) == (DONE, "")
    assert re.search(r" compresscodec: none crc: \d+ isvalid: true payload: arrow$", ran.lines[2])
    assert re.fullmatch(
        r"\+ arrow schemaId: 0 rows: 5 columns: 4 keyColumn: 1 timestampColumn: 3 headerSize: 243 "
        r"metadataSize: \d+ bodySize: \d+ offsetDeltas: false crc: \d+ isvalid: true",
        ran.lines[3],
    )
    assert [without_crc(text) for text in ran.lines[4:]] == [
        "+ column: key id: 1 nulls: 2 position: 0 size: 40 uncompressedSize: 31 min: none max: none "
        "crc: * isvalid: true",
        "+ column: value id: 2 nulls: 0 position: 40 size: 40 uncompressedSize: 34 min: none max: none "
        "crc: * isvalid: true",
        "+ column: timestamp id: 3 nulls: 0 position: 80 size: 40 uncompressedSize: 40 min: none max: none "
        "crc: * isvalid: true",
        "+ column: headers id: 4 nulls: 4 position: 120 size: 64 uncompressedSize: 43 min: none max: none "
        "crc: * isvalid: true",
    ]
    deep = dump(path, "--print-data-log").lines[8:]
    assert deep[0] == (
        "| offset: 0 CreateTime: 1700000000000 keySize: -1 valueSize: 2 sequence: 0 headerKeys: [] "
        "payload: v0"
    )
    assert deep[1] == (
        "| offset: 1 CreateTime: 1700000000001 keySize: 2 valueSize: 2 sequence: 1 headerKeys: [h] key: k1 "
        "payload: v1"
    )
    assert len(deep) == 5


def test_statistics_of_a_column_are_shown_once_there_are_some(batches: SimpleNamespace) -> None:
    from sparklog.cli.logs.dump.arrow_columns import column_rows
    from sparklog.records.arrow.header import ColumnEntry, parse_arrow_header

    payload = memoryview(batches.arrow(5))[61:]
    header = parse_arrow_header(payload)
    times = header.columns[2]
    stretched = bytearray(payload)
    stretched[48:56] = (7).to_bytes(8, "little")
    stretched[56:60] = b"text"
    header = type(header)(
        **{name: getattr(header, name) for name in header.__slots__}
        | {
            "columns": (
                ColumnEntry(*times[:10], 48, 8, 48, 8),
                ColumnEntry(*header.columns[0][:10], 56, 4, 48, 8),
                ColumnEntry(*header.columns[0][:10], header.header_length, 4, 0, 0),
            )
        }
    )
    shown = [row.text() for row in column_rows(memoryview(stretched), header)]
    assert " min: 7 max: 7 " in shown[0]
    assert " min: text max: 0x0700000000000000 " in shown[1]
    assert " min: none max: none " in shown[2]


def test_max_bytes_stops_after_the_batches_that_fit(dump: Dump, make: Any) -> None:
    path = make.records_log() / f"{FIRST}.log"
    for bytes_max, count in ((1, 0), (153, 0), (154, 1), (200, 1), (1050, 2)):
        ran = dump(path, "--max-bytes", str(bytes_max))
        assert (ran.status, ran.err) == (DONE, "")
        assert len(ran.lines) == 2 + count
    assert len(dump(path, "--max-bytes", "2147483647").lines) == 13


def test_an_empty_segment_has_no_lines(dump: Dump, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000042.log"
    path.write_bytes(b"")
    ran = dump(path)
    assert (ran.status, ran.lines) == (DONE, [f"Dumping {path}", "Log starting offset: 42"])


def test_a_segment_has_the_records_of_one_topic(dump: Dump, make: Any) -> None:
    ran = dump(make.records_log() / f"{FIRST}.log", "--transaction-log-decoder", "--offsets-decoder")
    assert ran.status == WRONG_USAGE
    assert "--offsets-decoder and --transaction-log-decoder are both given" in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--value-decoder-class", "org.example.MyDecoder"], "names a Java class"),
        (["--key-decoder-class=org.example.MyDecoder"], "names a Java class"),
        (["--value-decoder-class"], "names a Java class"),
        (["--cluster-metadata-decoder"], "no KRaft"),
        (["--remote-log-metadata-decoder"], "no tiered storage"),
    ],
)
def test_decoders_that_cannot_be_here_are_refused(
    arguments: list[str], words: str, dump: Dump, make: Any
) -> None:
    ran = dump(make.root / "nothing.log", *arguments)
    assert (ran.status, ran.out) == (WRONG_USAGE, "")
    assert words in ran.err


@pytest.mark.parametrize("value", ["0", "-1", "many", "2147483648"])
def test_sizes_must_be_sizes(value: str, dump: Dump, make: Any) -> None:
    ran = dump(make.root / "nothing.log", f"--max-bytes={value}")
    assert ran.status == WRONG_USAGE
    assert "not a number of bytes" in ran.err


def test_json_is_one_object_with_batches_columns_and_records(
    dump: Dump, make: Any, batches: SimpleNamespace
) -> None:
    log = make.log("mixed-1")
    make.append(log, batches.records(2), batches.arrow(2), batches.marker(1, 11))
    log.close()
    path = make.root / "mixed-1" / f"{FIRST}.log"
    ran = dump([path, make.root / "mixed-1" / "leader-epoch-checkpoint"], "--print-data-log", "--json")
    assert (ran.status, ran.err) == (DONE, "")
    shown, epochs = ran.json["files"]
    assert ran.json["problems"] == []
    assert (shown["file"], shown["kind"], shown["log_starting_offset"]) == (str(path), "log", 0)
    first, second, third = shown["batches"]
    assert first == {
        "base_offset": 0,
        "last_offset": 1,
        "count": 2,
        "base_sequence": -1,
        "last_sequence": -1,
        "producer_id": -1,
        "producer_epoch": -1,
        "partition_leader_epoch": 0,
        "is_transactional": False,
        "is_control": False,
        "delete_horizon_ms": None,
        "position": 0,
        "timestamp_type": "CreateTime",
        "max_timestamp": batches.T0 + 1,
        "size": first["size"],
        "magic": 2,
        "compresscodec": "none",
        "crc": first["crc"],
        "isvalid": True,
        "payload": "records",
        "records": first["records"],
    }
    assert first["records"][1] == {
        "offset": 1,
        "timestamp_type": "CreateTime",
        "timestamp": batches.T0 + 1,
        "key_size": 5,
        "value_size": 7,
        "sequence": -1,
        "header_keys": ["trace", "über"],
        "key": "key-1",
        "payload": "value-1",
    }
    assert second["payload"] == "arrow"
    assert second["arrow"][0]["schema_id"] == 0
    assert [column["column"] for column in second["columns"]] == ["key", "value", "timestamp", "headers"]
    assert second["columns"][0]["min"] is None
    assert [record["payload"] for record in second["records"]] == ["v0", "v1"]
    assert third["records"][0]["control"] == "endTxnMarker: COMMIT coordinatorEpoch: 3"
    assert epochs["entries"] == [{"epoch": 0, "start_offset": 0}]


def test_files_without_rows_are_whole_json_objects_too(dump: Dump, tmp_path: Path) -> None:
    paths = [tmp_path / f"{FIRST}.log", tmp_path / f"{FIRST}.index", tmp_path / "missing.log"]
    paths[0].write_bytes(b"")
    paths[1].write_bytes(b"")
    ran = dump(paths, "--json")
    assert ran.status == FAILED
    assert ran.json == {
        "files": [
            {"file": str(paths[0]), "kind": "log", "log_starting_offset": 0, "batches": []},
            {"file": str(paths[1]), "kind": "index", "empty": True, "entries": []},
            {"file": str(paths[2]), "kind": "log", "batches": []},
        ],
        "problems": [{"file": str(paths[2]), "kind": "unreadable", "reason": "No such file or directory"}],
    }
