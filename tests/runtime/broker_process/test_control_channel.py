"""Lines of JSON between supervisor and brokers: what passes, what is refused, what an end looks like."""

import json
import os
import socket
import threading

import pytest

from sparklog_runtime.broker_process.control_channel import (
    LINE_BYTES_MAX,
    ControlConnection,
    ControlError,
    require_int,
    require_list,
    require_str,
)


@pytest.fixture
def ends():
    listener = socket.create_server(("127.0.0.1", 0))
    near = ControlConnection.open("127.0.0.1", listener.getsockname()[1], 5.0)
    raw, _ = listener.accept()
    listener.close()
    yield near, raw
    near.close()
    raw.close()


def test_a_message_arrives_as_it_was_sent(ends):
    near, raw = ends
    far = ControlConnection.accept(raw, 5.0)
    far.send({"type": "welcome", "broker_id": 3, "note": "é\n"})
    assert near.receive() == {"type": "welcome", "broker_id": 3, "note": "é\n"}


def test_messages_sent_in_one_piece_are_told_apart(ends):
    near, raw = ends
    raw.sendall(b'{"type":"a"}\n{"type":"b"}\n{"ty')
    raw.sendall(b'pe":"c"}\n')
    assert [near.receive()["type"] for _ in range(3)] == ["a", "b", "c"]


def test_a_message_that_is_late_is_waited_for_again(ends):
    near, raw = ends
    raw.sendall(b'{"type":')
    with pytest.raises(TimeoutError, match="not sent a whole message in time"):
        near.receive(0.01)
    raw.sendall(b'"late"}\n')
    assert near.receive(60) == {"type": "late"}


def test_a_message_that_the_peer_takes_late_is_sent_whole(ends):
    near, raw = ends
    with socket.socket(fileno=os.dup(near._stream.fileno())) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    messages = [{"type": "failed", "reason": str(number) * 60_000} for number in range(10)]
    sender = threading.Thread(target=lambda: [near.send(message) for message in messages])
    sender.start()
    far = ControlConnection.accept(raw, 5.0)
    assert [far.receive(60) for _ in messages] == messages
    sender.join()


def test_closing_our_end_wakes_the_thread_that_waits(ends):
    near, _raw = ends
    received = []
    waiting = threading.Thread(target=lambda: received.append(near.receive()))
    waiting.start()
    near.close()
    waiting.join(60)
    assert received == [None]
    with pytest.raises(ConnectionAbortedError, match="is closed"):
        near.send({"type": "bye"})


def test_the_end_of_the_peer_reads_as_none(ends):
    near, raw = ends
    raw.close()
    assert near.receive() is None


def test_closing_our_end_reads_as_none_too(ends):
    near, _raw = ends
    near.close()
    assert near.receive() is None


@pytest.mark.parametrize(
    "line", [b"\x80\x04K\x01.\n", b"[1]\n", b'{"no":"type"}\n', b'{"type":1}\n', b"[" * 5_000 + b"\n"]
)
def test_what_is_no_message_is_refused(ends, line):
    near, raw = ends
    raw.sendall(line)
    with pytest.raises(ControlError):
        near.receive()


def test_a_line_without_end_is_refused_at_its_bound(ends):
    near, raw = ends
    raw.sendall(b"x" * (LINE_BYTES_MAX + 1))
    with pytest.raises(ControlError, match="longer than 65536"):
        near.receive()


def test_a_message_larger_than_the_bound_is_not_sent(ends):
    near, _raw = ends
    with pytest.raises(ControlError, match="larger than 65536"):
        near.send({"type": "failed", "reason": "x" * LINE_BYTES_MAX})


def test_fields_are_checked_and_named():
    message = json.loads('{"type":"hello","slot":"1","pid":true,"found":[1,"2"],"token":5}')
    with pytest.raises(ControlError, match="slot='1' is not a whole number"):
        require_int(message, "slot")
    with pytest.raises(ControlError, match="pid=True"):
        require_int(message, "pid")
    with pytest.raises(ControlError, match="token=5 is not a string"):
        require_str(message, "token")
    with pytest.raises(ControlError, match="found is no list of int"):
        require_list(message, "found", int)
