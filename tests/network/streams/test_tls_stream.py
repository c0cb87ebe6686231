"""A TLS stream at one end of a socket pair; at the other one its peer, or a test that looks at the wire."""

import contextlib
import os
import socket
import ssl
import struct
import threading

import pytest

from sparklog.network.streams.inbound import FrameReceiver
from sparklog.network.streams.outbound import OutboundParts
from sparklog.network.streams.tls_stream import TlsStream
from tests.network.frames import frame
from tests.network.tls_sides import ClientSide, ServerSide

WORD = b"a planted word that nobody may read"
LIMIT = 100 * 1024 * 1024


class Explained(ConnectionError):  # noqa: N818 (it states a fact)
    """What the streams of these tests raise for an error of OpenSSL."""


def explain(error, _greeting):
    return Explained(error.reason or str(error))


def advance(*streams):
    """Shake hands until all are over."""
    under_way = list(streams)
    while under_way:
        under_way = [stream for stream in under_way if not stream.shake_hands()]


@pytest.fixture
def sockets(cleanups):
    pair = socket.socketpair()
    for sock in pair:
        sock.setblocking(False)
    cleanups.actions += [sock.close for sock in pair]
    return pair


@pytest.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def pair(sockets, request):
    """The dialling and the accepting stream, with the handshake over."""
    client_side, server_side = ClientSide(greatest=request.param), ServerSide()
    client = TlsStream(sockets[0], client_side.context(), explain=explain, dialled="localhost")
    server = TlsStream(sockets[1], server_side.context(), explain=explain)
    advance(client, server)
    with pytest.raises(BlockingIOError):
        client.recv(1)  # takes the server's tickets
    return client, server


def receive_all(stream, count):
    """Exactly ``count`` bytes; what a selector would not see must be there without it."""
    data = bytearray()
    while len(data) < count:
        data += stream.recv(min(64 * 1024, count - len(data)))
    return bytes(data)


def nothing_arrives(stream):
    with pytest.raises(BlockingIOError):
        stream.recv(1)
    return not stream.has_pending


def transfer(parts, sender, receiver):
    """What ``receiver`` gets of ``parts``, and how often the sender's socket was full."""
    outbound, received, full = OutboundParts(parts), bytearray(), 0
    while not outbound.write(sender, 1 << 30):
        full += 1
        with contextlib.suppress(BlockingIOError):
            received += receiver.recv(1 << 20)
    while True:
        try:
            received += receiver.recv(1 << 20)
        except BlockingIOError:
            return bytes(received), full


@pytest.mark.parametrize("size", [1, 100, 16_383, 16_384, 16_385, 65_536, 65_537, 3_000_000])
def test_bytes_of_any_number_arrive_as_they_were_in_both_directions(pair, size):
    content = os.urandom(size)
    assert transfer([content], *pair)[0] == content
    assert transfer([content[:7], content[7:]], *reversed(pair))[0] == content


def test_a_full_socket_is_written_in_pieces_and_accepts_a_bounded_number_of_bytes(pair, make_slice):
    content = os.urandom(2_000_000)
    parts = [content[:900_000], make_slice(content), *[b"%d" % n for n in range(500)], make_slice(b"end")]
    received, full = transfer(parts, *pair)
    assert received == content[:900_000] + content + b"".join(b"%d" % n for n in range(500)) + b"end"
    assert full > 3


def test_what_the_kernel_has_not_taken_stays_small_and_leaves_with_a_flush(pair):
    sender, receiver = pair
    content = os.urandom(4_000_000)
    accepted = fill(sender, content)
    assert 0 < sender.unsent_bytes < 100_000
    assert not sender.flush()
    received = bytearray()
    while not sender.flush():
        received += receiver.recv(1 << 16)
    received += receive_all(receiver, accepted - len(received))
    assert (bytes(received), sender.unsent_bytes) == (content[:accepted], 0)


def fill(sender, content):
    """How much of ``content`` was accepted, when no more is."""
    accepted = 0
    with contextlib.suppress(BlockingIOError):
        while accepted < len(content):
            accepted += sender.send(content[accepted:])
    return accepted


def test_bytes_that_no_selector_sees_are_pending_until_they_are_taken(pair):
    sender, receiver = pair
    sender.send(b"x" * 40_000)
    assert receiver.recv(10) == b"x" * 10
    assert receiver.has_pending
    assert receive_all(receiver, 39_989) == b"x" * 39_989
    assert receiver.has_pending
    assert receiver.recv(10) == b"x"
    assert nothing_arrives(receiver)


def test_half_a_record_is_not_pending(pair, sockets):
    sender, receiver = pair
    relayed = record_of(sender, sockets, b"whole")
    sockets[0].send(relayed[:9])
    assert nothing_arrives(receiver)
    sockets[0].send(relayed[9:])
    assert receiver.recv(100) == b"whole"


def record_of(sender, sockets, data):
    """The ciphertext of ``data``, taken from the wire before its receiver sees it."""
    sender.send(data)
    return sockets[1].recv(1 << 20)


def test_frames_come_out_whole_and_in_order(pair):
    sender, receiver = pair
    frames, frame_receiver = [os.urandom(size) for size in (0, 1, 70_000, 3, 2_500_000, 16_384)], None
    frame_receiver, received = FrameReceiver(LIMIT), []
    outbound = OutboundParts([frame(one) for one in frames])
    while len(received) < len(frames):
        outbound.write(sender, 1 << 30)
        with contextlib.suppress(BlockingIOError):
            frame_receiver.receive(receiver)
        while (arrived := frame_receiver.next_frame()) is not None:
            received.append(bytes(arrived))
    assert received == frames


# On the wire


def test_nothing_of_a_message_or_of_a_file_is_in_the_clear_on_the_wire(pair, sockets, make_slice):
    sender, _ = pair
    assert OutboundParts([WORD, make_slice(WORD * 100), memoryview(WORD)]).write(sender, 1 << 30)
    wire = sockets[1].recv(1 << 20)
    assert len(wire) > 102 * len(WORD)
    assert WORD not in wire


def test_a_shutdown_beside_a_sender_puts_nothing_in_the_clear_on_the_wire(cleanups):
    for _ in range(20):
        near, far = socket.socketpair()
        for sock in (near, far):
            sock.setblocking(False)
        sender = TlsStream(near, ClientSide().context(), explain=explain, dialled="localhost")
        advance(sender, TlsStream(far, ServerSide().context(), explain=explain))
        begun = threading.Event()

        def send(sender=sender, begun=begun):
            with contextlib.suppress(ConnectionError, BlockingIOError):
                while True:
                    sender.send(WORD)
                    begun.set()

        thread = threading.Thread(target=send)
        thread.start()
        assert begun.wait(20)
        with contextlib.suppress(OSError):  # the sender has filled the socket, and has ended
            sender.shutdown()
        thread.join()
        wire = bytearray()
        with contextlib.suppress(BlockingIOError):
            while chunk := far.recv(1 << 20):
                wire += chunk
        assert wire
        assert WORD not in wire
        sender.close()
        far.close()


def test_a_file_that_ends_before_its_slice_is_an_error(pair, make_slice):
    with pytest.raises(OSError, match="ended 45 bytes before"):
        OutboundParts([make_slice(b"short", position=0, length=50)]).write(pair[0], 1_000)


# Ends


def test_an_announced_end_comes_after_the_bytes_before_it_though_no_selector_sees_it(pair):
    sender, receiver = pair
    sender.send(b"last words")
    sender.close()
    assert receiver.recv(100) == b"last words"
    assert receiver.has_pending
    assert receiver.recv(100) == b""
    assert receiver.recv(100) == b""


def test_an_end_that_is_not_announced_is_an_end_too(pair, sockets):
    sender, receiver = pair
    sender.send(b"last words")
    sockets[0].close()
    assert receiver.recv(100) == b"last words"
    assert receiver.recv(100) == b""


def test_a_peer_that_has_ended_its_side_still_gets_an_answer(pair, sockets):
    asker, answerer = pair
    asker.send(b"question")
    sockets[0].shutdown(socket.SHUT_WR)
    assert answerer.recv(100) == b"question"
    assert answerer.recv(100) == b""
    answerer.send(b"answer")
    assert asker.recv(100) == b"answer"


def test_a_changed_record_breaks_the_stream_for_good(pair, sockets):
    sender, receiver = pair
    record = bytearray(record_of(sender, sockets, b"pay 10"))
    record[-1] ^= 1
    sockets[0].send(record)
    for _ in range(2):
        with pytest.raises(Explained, match="BAD_RECORD_MAC"):
            receiver.recv(100)
    with pytest.raises(Explained, match="BAD_RECORD_MAC"):
        sender.recv(100)  # the alert says so to the other side


def test_bytes_before_a_changed_record_are_received_first(pair, sockets):
    sender, receiver = pair
    good, bad = record_of(sender, sockets, b"good"), bytearray(record_of(sender, sockets, b"bad"))
    bad[-1] ^= 1
    sockets[0].send(good + bad)
    assert receiver.recv(100) == b"good"
    assert receiver.has_pending
    with pytest.raises(Explained):
        receiver.recv(100)


def test_a_replayed_record_is_refused(pair, sockets):
    sender, receiver = pair
    record = record_of(sender, sockets, b"pay 10")
    sockets[0].send(record + record)
    assert receiver.recv(6) == b"pay 10"
    with pytest.raises(Explained, match="BAD_RECORD_MAC"):
        receiver.recv(6)


def test_a_send_to_a_peer_that_has_refused_and_left_raises_what_the_peer_has_said(sockets):
    client = TlsStream(sockets[0], ClientSide().context(), explain=explain, dialled="localhost")
    wants_certificate = ServerSide(client_auth=ssl.CERT_REQUIRED)
    server = TlsStream(sockets[1], wants_certificate.context(), explain=explain)
    while not client.shake_hands():
        server.shake_hands()
    with pytest.raises(Explained, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        server.shake_hands()
    server.close()
    with pytest.raises(Explained, match="ALERT_CERTIFICATE_REQUIRED"):
        client.send(b"question")


def test_a_flood_of_tiny_records_is_taken_in_several_steps_without_loss(pair):
    sender, receiver = pair
    for number in range(200):
        sender.send(bytes([number]))
    first = receiver.recv(1 << 16)
    assert 0 < len(first) < 200
    assert receiver.has_pending
    assert first + receive_all(receiver, 200 - len(first)) == bytes(range(200))


def test_one_thread_sends_while_another_receives_on_both_sides(pair):
    """Each session is used by two threads at once for megabytes, with every lock in play."""
    count, outcomes = 4_000_000, []

    def send(stream, content):
        rest = memoryview(content)
        while rest or not stream.flush():
            with contextlib.suppress(BlockingIOError):
                rest = rest[stream.send(rest) :] if rest else rest

    def receive(stream, content):
        got = bytearray()
        while len(got) < len(content):
            with contextlib.suppress(BlockingIOError):
                got += stream.recv(1 << 16)
        outcomes.append(bytes(got) == content)

    there, back = os.urandom(count), os.urandom(count)
    threads = [
        threading.Thread(target=action, args=(stream, content))
        for action, stream, content in (
            (send, pair[0], there),
            (receive, pair[1], there),
            (send, pair[1], back),
            (receive, pair[0], back),
        )
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [True, True]


def test_an_idle_stream_keeps_nothing_of_what_it_has_transferred(pair):
    content = os.urandom(1_000_000)
    for sender, receiver in (pair, pair[::-1]):
        transfer([content], sender, receiver)
    for stream in pair:
        assert (len(stream._unfed.obj), len(stream._unsent), stream.unsent_bytes) == (0, 0, 0)


def test_the_first_bytes_of_a_peer_show_whether_it_speaks_tls(sockets):
    greetings = []

    def note(error, greeting):
        greetings.append(greeting)
        return explain(error, greeting)

    server = TlsStream(sockets[1], ServerSide().context(), explain=note)
    assert not server.has_heard
    sockets[0].send(struct.pack(">i", 20))
    sockets[0].send(b"in the clear, 16 bytes")
    with pytest.raises(Explained):
        server.shake_hands()
    assert server.has_heard
    assert greetings == [b"\0\0\0"]


# Peers that keep this side at work


@pytest.fixture
def greeted(sockets):
    """The dialling and the accepting stream; the server sends so many tickets, which have no plaintext."""

    def greeted_with(tickets):
        server_side = ServerSide()
        server_side.context().num_tickets = tickets
        client = TlsStream(sockets[0], ClientSide().context(), explain=explain, dialled="localhost")
        server = TlsStream(sockets[1], server_side.context(), explain=explain)
        while not client.shake_hands():
            server.shake_hands()
        server.shake_hands()
        return client, server

    return greeted_with


def test_a_peer_that_goes_on_without_plaintext_breaks_the_stream(greeted):
    client, server = greeted(tickets=400)
    error = None
    for _ in range(20):
        server.flush()
        try:
            client.recv(1)
        except BlockingIOError:
            continue
        except ConnectionAbortedError as broken:
            error = broken
    assert "bytes of TLS without content" in str(error)
    assert client.has_pending is False


def test_plaintext_pays_for_what_comes_beside_it(greeted):
    client, server = greeted(tickets=2)
    for count in (1, 20, 3_000, 16_384):
        for _ in range(400):
            server.send(bytes(count))
            assert len(receive_all(client, count)) == count
