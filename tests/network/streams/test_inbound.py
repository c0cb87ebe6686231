import socket
import struct

import pytest

from sparklog.model.errors import WireError
from sparklog.network.streams.inbound import GROWTH_BYTES_MAX, RECEIVE_BYTES, FrameReceiver

LIMIT = 100 * 1024 * 1024


@pytest.fixture
def pair(cleanups):
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    cleanups.actions += [ours.close, theirs.close]
    return ours, theirs


def framed(payload):
    return struct.pack(">i", len(payload)) + payload


def receive_all(receiver, sock):
    frames = []
    while True:
        try:
            if receiver.receive(sock) == 0:
                return frames
        except BlockingIOError:
            return frames
        while (frame := receiver.next_frame()) is not None:
            frames.append(bytes(frame))


def test_frames_come_out_whole_however_the_bytes_are_cut(pair):
    ours, theirs = pair
    receiver, frames = FrameReceiver(LIMIT), []
    for byte in framed(b"one") + framed(b"") + framed(b"three" * 50):
        theirs.send(bytes([byte]))
        frames += receive_all(receiver, ours)
    assert frames == [b"one", b"", b"three" * 50]
    assert receiver.buffered_bytes == 0


def test_many_frames_in_one_chunk_come_out_one_by_one(pair):
    ours, theirs = pair
    theirs.sendall(b"".join(framed(b"%d" % number) for number in range(100)) + b"\0\0")
    receiver = FrameReceiver(LIMIT)
    assert receive_all(receiver, ours) == [b"%d" % number for number in range(100)]
    assert receiver.has_unread


def test_a_large_frame_is_put_together(pair):
    ours, theirs = pair
    payload = bytes(range(256)) * 20_000
    receiver, frames, rest = FrameReceiver(LIMIT), [], memoryview(framed(payload) + framed(b"next"))
    while rest:
        rest = rest[theirs.send(rest[:150_000]) :]
        frames += receive_all(receiver, ours)
    assert frames == [payload, b"next"]


def test_each_frame_has_writable_memory_of_its_own(pair):
    ours, theirs = pair
    theirs.sendall(framed(b"aaaa") + framed(b"bbbb"))
    receiver = FrameReceiver(LIMIT)
    receiver.receive(ours)
    first, second = receiver.next_frame(), receiver.next_frame()
    first[:] = b"xxxx"
    assert (bytes(first), bytes(second)) == (b"xxxx", b"bbbb")


@pytest.mark.parametrize("size", [-1, -(2**31), LIMIT + 1, 2**31 - 1])
def test_an_impossible_size_is_refused_before_memory_is_taken(pair, size):
    ours, theirs = pair
    theirs.sendall(struct.pack(">i", size) + b"abc")
    receiver = FrameReceiver(LIMIT)
    receiver.receive(ours)
    with pytest.raises(WireError, match=rf"frame of {size} bytes.*0 to {LIMIT} are accepted"):
        receiver.next_frame()
    assert receiver.buffered_bytes < 100


def test_memory_follows_what_has_arrived_not_what_was_announced(pair):
    ours, theirs = pair
    theirs.sendall(struct.pack(">i", LIMIT) + b"abc")
    receiver = FrameReceiver(LIMIT)
    receive_all(receiver, ours)
    assert receiver.buffered_bytes <= 3 + RECEIVE_BYTES
    arrived = 3
    for _ in range(40):
        arrived += theirs.send(bytes(100_000))
        receive_all(receiver, ours)
        assert receiver.buffered_bytes <= 2 * arrived + RECEIVE_BYTES
        assert receiver.buffered_bytes <= arrived + GROWTH_BYTES_MAX


def test_an_idle_connection_holds_no_memory(pair):
    ours, theirs = pair
    theirs.sendall(framed(bytes(1_000)))
    receiver = FrameReceiver(LIMIT)
    receive_all(receiver, ours)
    assert receiver.buffered_bytes == 0


def test_the_end_of_the_stream_is_told_with_zero(pair):
    ours, theirs = pair
    theirs.close()
    assert FrameReceiver(LIMIT).receive(ours) == 0
