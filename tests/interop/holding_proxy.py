"""A proxy before each broker of a cluster, which holds a produce request back as a slow broker would.

The request has left its client, and does not reach its broker until it is released. What comes later over
the same connection waits with it.
"""

import threading
from collections.abc import Mapping

from sparklog.wire.codec import parse_request_header
from tests.interop.recording_proxy import PRODUCE, Connection, RecordingProxy, pass_on

WAIT_SECONDS = 30.0


class HoldingProxy(RecordingProxy):
    """A context manager."""

    def __init__(self, brokers: Mapping[int, tuple[str, int]]) -> None:
        super().__init__(brokers, lambda _api_key, _number: "arrives")
        self._guard = threading.Lock()  # a release comes from another thread than the proxy's
        self._wanted = -1
        self._held: list[tuple[Connection, bytes]] = []
        self._is_held = threading.Event()

    def hold_the_next_produce(self, broker_id: int) -> None:
        self._is_held.clear()
        self._wanted = broker_id

    def wait_until_held(self) -> None:
        if not self._is_held.wait(WAIT_SECONDS):
            raise TimeoutError(f"no produce came to broker {self._wanted} in {WAIT_SECONDS:.0f} s")

    def release(self) -> None:
        """Let the broker have what was held."""
        with self._guard:
            held, self._held = self._held, []
            for connection, frame in held:
                pass_on(connection, frame)

    def _on_request(self, connection: Connection, frame: bytes) -> bool:
        with self._guard:
            header, _ = parse_request_header(frame)
            is_wanted = header.api_key == PRODUCE and connection.broker_id == self._wanted
            if is_wanted or any(one is connection for one, _ in self._held):
                self._wanted = -1
                self._held.append((connection, frame))
                self._is_held.set()
                return False
            pass_on(connection, frame)
            return False
