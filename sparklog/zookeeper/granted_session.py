"""The session time-out that ZooKeeper's servers grant, which need not be what was asked for."""

from kazoo.client import KazooClient


class GrantedSession:
    """Notes it at each connect of ``client``: kazoo itself has it in a local variable alone, and returns two
    thirds of it.
    """

    def __init__(self, client: KazooClient) -> None:
        self.timeout_ms = 0
        """0 before the first session."""
        self._connect = client._connection._connect
        client._connection._connect = self._connect_and_note

    def _connect_and_note(self, host: str, address: str, port: int) -> tuple[float, float]:
        read_timeout_ms, connect_timeout_ms = self._connect(host, address, port)
        self.timeout_ms = round(read_timeout_ms * 3 / 2)
        return read_timeout_ms, connect_timeout_ms
