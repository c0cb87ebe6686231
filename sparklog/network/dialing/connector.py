"""How this process dials: in the clear or over TLS with contexts of its own, with or without a login.

All that opens connections to brokers or to the controller gets a connector, and opens them by nothing else.
"""

from typing import TYPE_CHECKING, Final

from sparklog.network.dialing.connection import ANSWER_BYTES_MAX, Connection

if TYPE_CHECKING:
    from sparklog.network.login.client_login import ClientLogin
    from sparklog.network.tls.sides import TlsClient


class Connector:
    """For any thread."""

    def __init__(self, tls: "TlsClient | None" = None, login: "ClientLogin | None" = None) -> None:
        """``tls``: the context for each connection; None dials in the clear. ``login``: who logs in at each;
        None for nobody.
        """
        self._tls = tls
        self._login = login

    def open(
        self,
        host: str,
        port: int,
        *,
        client_id: str,
        timeout_ms: int,
        frame_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> Connection:
        """Connect; raises as ``Connection.open`` does."""
        return Connection.open(
            host,
            port,
            client_id=client_id,
            timeout_ms=timeout_ms,
            frame_bytes_max=frame_bytes_max,
            tls=self._tls,
            login=self._login,
        )


IN_THE_CLEAR: Final = Connector()
"""Dials without encryption, and logs nobody in."""
