"""Histories on disk: what is written is read again, and what is no history is refused with line and field."""

import ast
import itertools
import json
import re
import sys
from pathlib import Path

import pytest

import histories
from histories import HistoryError, Writer, read_history
from histories.read import LINE_MAX

SEND = {
    "t_ns": 5,
    "process": "p",
    "type": "invoke",
    "f": "send",
    "op": 1,
    "topic": "t",
    "partition": 0,
    "value": "v",
    "acks": "all",
    "session": "s",
    "seq": 0,
    "idempotent": True,
}
SENT = {"t_ns": 6, "process": "p", "type": "ok", "f": "send", "op": 1, "offset": 3}
POLL = {
    "t_ns": 7,
    "process": "c",
    "type": "ok",
    "f": "poll",
    "topic": "t",
    "partition": 0,
    "from": 7,
    "records": [[7, "v"], [8, "w"]],
}


def lines_file(folder, *lines):
    path = folder / "history.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "history.jsonl"
    with Writer(path, clock=itertools.count(10).__next__) as writer:
        op = writer.send("p", "t", 0, "v", acks=1, session="s", seq=4, idempotent=False, key="k", in_flight=1)
        other = writer.send(
            "p", "t", 0, "w", acks="all", session="s", seq=5, idempotent=True, key="k", tombstone=True
        )
        writer.sent("p", op, offset=7, leader_epoch=2)
        writer.failed("p", other, "too large " * 1_000)
        writer.polled("c", "t", 0, 7, [(7, "v")], op=writer.poll("c", "t", 0), epochs=[(7, 2)])
        writer.seek("c", "t", 0, 3)
        writer.ended("c", writer.end("c", "t", 0), 8, leader_epoch=2)
        writer.event("harness", "leader", topic="t", partition=0, leader="1", leader_epoch=3, is_unclean=True)
        writer.event("harness", "fault", kind="kill", target="1", phase="begin", id="a")
        writer.event("harness", "fault", kind="kill", target="1", phase="end", id="a")
        writer.event("harness", "topic", topic="t", what="created", cleanup="compact")
        writer.event("harness", "heal")
    history = read_history(path)
    send, failed = history.sends
    assert (send.outcome, send.offset, send.leader_epoch, send.invoked_ns, send.done_ns) == (
        "ok",
        7,
        2,
        11,
        13,
    )
    assert (send.acks, send.seq, send.is_idempotent, send.key, send.in_flight) == (1, 4, False, "k", 1)
    assert (failed.outcome, failed.acks, failed.is_tombstone, failed.in_flight) == ("fail", -1, True, -1)
    poll, seek = history.reads
    assert (poll.start, poll.records, poll.invoked_ns, poll.done_ns) == (7, [(7, "v")], 15, 16)
    assert poll.epochs == [(7, 2)]
    assert seek.offset == 3
    assert [(end.offset, end.leader_epoch) for end in history.ends] == [(8, 2)]
    assert [(one.leader_epoch, one.is_unclean) for one in history.leaders] == [(3, True)]
    assert [(one.kind, one.begin_ns, one.end_ns) for one in history.faults] == [("kill", 21, 22)]
    assert [(one.is_created, one.is_compacted) for one in history.topics] == [(True, True)]
    assert history.healed_ns == 24


def test_what_groups_do_is_written_and_read(tmp_path):
    path = tmp_path / "history.jsonl"
    with Writer(path, clock=itertools.count(10).__next__) as writer:
        first = writer.commit("m", "g", "t", 0, "5")
        writer.done("m", first)
        writer.failed("m", writer.commit("m", "g", "t", 0, "6"), "ILLEGAL_GENERATION", what="commit")
        writer.unknown("m", writer.commit("m", "g", "t", 0, "7"), "timed out", what="commit")
        writer.found_committed("m", writer.committed("m", "g", "t", 0), "5")
        writer.found_committed("m", writer.committed("m", "g", "t", 1), None)
        writer.assigned("m", "g", 3, "m-1", ["t-0", "t-1"])
        writer.event("harness", "group_lost", group="g")
    history = read_history(path)
    assert [(one.value, one.outcome, one.error) for one in history.commits] == [
        ("5", "ok", ""), ("6", "fail", "ILLEGAL_GENERATION"), ("7", "info", "timed out"),
    ]  # fmt: skip
    assert [(one.partition, one.value, one.invoked_ns, one.done_ns) for one in history.committed] == [
        (0, "5", 17, 18), (1, None, 19, 20),
    ]  # fmt: skip
    assert [(one.generation, one.member, one.shares) for one in history.assigned] == [
        (3, "m-1", ["t-0", "t-1"])
    ]
    assert [(one.group, one.at_ns) for one in history.groups_lost] == [("g", 22)]


def test_long_reads_are_written_in_parts_and_joined(tmp_path):
    path = tmp_path / "history.jsonl"
    records = [(offset, f"v{offset}") for offset in range(5, 25_005)]
    copies = [(offset, 1, value) for offset, value in records]
    batches = [(5, 12_004, "a"), (12_005, 25_004, "b")]
    with Writer(path) as writer:
        writer.final("r", "t", 0, start=5, end=25_010, records=records)
        writer.final("r", "t", 1, start=0, end=0, records=[])
        dump = {"start": 5, "end": 25_010, "high_watermark": 25_010}
        writer.dump("r", "1", "t", 0, **dump, records=copies, batches=batches)
    history = read_history(path)
    assert [(one.start, one.end, one.records) for one in history.finals] == [(5, 25_010, records), (0, 0, [])]
    (read,) = history.dumps
    assert (read.start, read.end, read.records, read.batches) == (5, 25_010, copies, batches)


def test_files_of_several_processes_are_merged_by_time(tmp_path):
    clock = itertools.count(1).__next__
    with Writer(tmp_path / "a", clock=clock) as one, Writer(tmp_path / "b", clock=clock) as other:
        for number in range(4):
            writer = (one, other)[number % 2]
            writer.seek("c", "t", 0, number)
    assert [seek.offset for seek in read_history(tmp_path / "a", tmp_path / "b").reads] == [0, 1, 2, 3]


def test_a_line_that_its_writer_did_not_finish_is_left_out(tmp_path):
    path = lines_file(tmp_path, SEND, SENT)
    path.write_bytes(path.read_bytes()[:-1])
    assert read_history(path).sends[0].outcome == "info"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (POLL | {"epochs": [[7, -1]]}, "one of epochs is"),
        (POLL | {"epochs": [[6, 1]]}, "do not begin with the first of the records"),
        (POLL | {"epochs": [[7, 1], [9, 2]]}, "do not begin with the first of the records"),
        (POLL | {"epochs": [[7, 1], [7, 2]]}, "not in the order of offsets"),
        (SEND | {"t_ns": -1}, "t_ns is -1"),
        (SEND | {"t_ns": 4.0}, "t_ns is 4.0"),
        (SEND | {"acks": -1}, "acks is -1"),
        (SEND | {"acks": True}, "acks is True"),
        (SEND | {"value": "v" * 4_097}, "value is"),
        (SEND | {"partition": "0"}, "partition is '0'"),
        (SEND | {"idempotent": None}, "idempotent is absent"),
        (SEND | {"f": "sent"}, "f 'sent'"),
        (SEND | {"f": ["send"]}, "type 'invoke' with f"),
        (SENT, "was not invoked"),
        ([], "no object"),
        ({**SENT, "f": "poll", "topic": "t", "partition": 0, "from": 0, "records": [[1]]}, "a record is"),
        ({"t_ns": 1, "process": "h", "type": "event", "f": "history", "version": 2}, "version 2"),
    ],
)
def test_what_is_no_history_is_refused(tmp_path, line, complaint):
    with pytest.raises(HistoryError, match=f"line 1: .*{re.escape(complaint)}"):
        read_history(lines_file(tmp_path, line))


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([SEND, SEND], "invoked a second time"),
        ([SEND, SENT, SENT], "completed a second time"),
        ([SEND, SENT | {"t_ns": 1}], "in the order of time"),
        ([SEND, SENT | {"offset": "3"}], "offset is '3'"),
    ],
)
def test_lines_that_do_not_fit_together_are_refused(tmp_path, lines, complaint):
    with pytest.raises(HistoryError, match=f"line {len(lines)}: .*{complaint}"):
        read_history(lines_file(tmp_path, *lines))


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_bytes(b" " * (LINE_MAX + 10))
    with pytest.raises(HistoryError, match="longer than"):
        read_history(path)


def test_the_checker_imports_only_the_standard_library_itself_and_arrows_decoders():
    folder = Path(histories.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                is_own = name.startswith("histories")
                is_arrow = name == "pyarrow" and path.name in ("arrow_payload.py", "inflate.py")
                assert is_own or is_arrow or name.split(".")[0] in sys.stdlib_module_names, (path.name, name)
