import os
import socket

import pytest

from sparklog.model.parts import FileSlice, read_parts
from sparklog.network.streams.byte_stream import PlainStream
from sparklog.network.streams.outbound import READ_BYTES_MAX, OutboundParts


@pytest.fixture
def pair(cleanups):
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)
    cleanups.actions += [ours.close, theirs.close]
    return ours, theirs


def write_all(parts, ours, theirs, turn_bytes=1 << 30):
    outbound, received, blocked = OutboundParts(parts), bytearray(), 0
    while not outbound.write(PlainStream(ours), turn_bytes):
        blocked += 1
        received += theirs.recv(1 << 16)
    ours.shutdown(socket.SHUT_WR)
    while chunk := theirs.recv(1 << 16):
        received += chunk
    return bytes(received), blocked


def test_bytes_and_slices_of_files_arrive_in_order(pair, make_slice):
    parts = [
        b"head",
        memoryview(b"-view-"),
        make_slice(b"0123456789", position=2, length=5),
        make_slice(b"second file"),
        b"",
        b"tail",
    ]
    assert write_all(parts, *pair) == (b"head-view-23456second filetail", 0)


def test_a_full_socket_is_written_in_pieces(pair, make_slice):
    content = os.urandom(300_000)
    parts = [content[:100_000], make_slice(content), content[100_000:], *[b"%d" % n for n in range(500)]]
    received, blocked = write_all(parts, *pair)
    assert received == read_parts(parts)
    assert blocked > 10


def test_a_turn_ends_although_the_socket_would_take_more(pair, make_slice):
    parts = [make_slice(b"x" * 30_000), b"y" * 10]
    received, turns = write_all(parts, *pair, turn_bytes=1_000)
    assert received == b"x" * 30_000 + b"y" * 10
    assert turns >= 3


class CountingStream(PlainStream):
    """A stream that counts its calls."""

    __slots__ = ("calls",)

    def __init__(self, sock) -> None:
        super().__init__(sock)
        self.calls = []
        for name in ("send", "sendmsg"):
            setattr(self, name, self._counted(getattr(self, name), name))

    def _counted(self, write, name):
        def counted(*arguments):
            self.calls.append(name)
            return write(*arguments)

        return counted

    def send_slice(self, part, bytes_max, /):
        self.calls.append("send_slice")
        return super().send_slice(part, bytes_max)


def test_a_short_reply_leaves_in_one_call_and_a_longer_one_by_the_kernel(pair, make_slice):
    stream = CountingStream(pair[0])
    assert OutboundParts([b"head", make_slice(b"0123456789", position=2, length=5), b"!"]).write(
        stream, 1 << 20
    )
    assert (stream.calls, pair[1].recv(100)) == (["send"], b"head23456!")
    stream.calls.clear()
    OutboundParts([b"head", make_slice(b"x" * READ_BYTES_MAX)]).write(stream, 1)
    assert stream.calls == ["send"]
    OutboundParts([make_slice(b"x" * READ_BYTES_MAX), b"tail"]).write(stream, 1)
    assert stream.calls == ["send", "send_slice"]


def test_a_file_that_ended_before_a_short_slice_breaks_the_reply(make_slice):
    with pytest.raises(OSError, match="ended"):
        OutboundParts([b"head", make_slice(b"short", position=0, length=50)])


def test_nothing_to_write_is_written_at_once(pair):
    assert OutboundParts([]).write(PlainStream(pair[0]), 1)
    assert OutboundParts([b"", FileSlice(None, 0, 0)]).write(PlainStream(pair[0]), 1)


def test_a_file_that_ends_before_its_slice_is_an_error(pair, make_slice):
    part = make_slice(b"short", position=0, length=50)
    with pytest.raises(OSError, match="ended 45 bytes before"):
        OutboundParts([part]).write(PlainStream(pair[0]), 1_000)


def test_a_peer_that_is_gone_is_an_error(pair):
    ours, theirs = pair
    theirs.close()
    with pytest.raises(OSError, match="Broken pipe"):
        OutboundParts([b"late"]).write(PlainStream(ours), 1_000)
