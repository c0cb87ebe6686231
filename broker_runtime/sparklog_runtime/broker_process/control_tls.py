"""The supervisor's side of TLS on the control channel, which has a thread for each connection."""

import select
import socket
import time

from sparklog.network.streams.tls_stream import TlsStream
from sparklog.network.tls.client_errors import broken_or_refused
from sparklog.network.tls.sides import TlsServer


def accept_tls(peer: socket.socket, tls: TlsServer, timeout_s: float) -> TlsStream:
    """The stream of a peer whose certificate is accepted; OSError, with ``peer`` closed, if it is not."""
    deadline = time.monotonic() + timeout_s
    try:
        stream = TlsStream(peer, tls.context(), explain=broken_or_refused)
        poll = select.poll()
        while not stream.shake_hands():
            wait_s = deadline - time.monotonic()
            if wait_s <= 0:
                raise TimeoutError(f"its TLS handshake has not ended within {timeout_s:g} s")
            poll.register(stream, select.POLLIN | (select.POLLOUT if stream.unsent_bytes else 0))
            poll.poll(wait_s * 1_000)
    except BaseException:
        peer.close()
        raise
    return stream
