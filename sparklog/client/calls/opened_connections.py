"""How a client opens connections, and where it stops trying.

A broker that refuses a client's certificate says so, in TLS 1.3, only when the client reads. So over TLS a
client asks at once what it asks first in any case, the versions that the broker serves. A login that is
refused is refused again: a guesser waits for each answer, and a user need not.
"""

from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.calls.connections import BrokerConnection, Connect
from sparklog.client.errors import LoginDenied, SecurityRefused
from sparklog.network.dialing.connection import Connection
from sparklog.network.dialing.connector import IN_THE_CLEAR, Connector
from sparklog.network.dialing.peer_refused import LoginRefused, PeerRefused
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest


def opened_by(connector: Connector, client_id: str) -> Connect:
    """Opens connections with ``connector``; SecurityRefused where no later try can succeed."""

    def open_connection(endpoint: Endpoint, timeout_ms: int) -> BrokerConnection:
        try:
            connection = connector.open(
                endpoint.host, endpoint.port, client_id=client_id, timeout_ms=timeout_ms
            )
            if connector is not IN_THE_CLEAR:
                _hear_first_answer(connection)
        except LoginRefused as error:
            raise LoginDenied(str(error)) from error
        except PeerRefused as error:
            raise SecurityRefused(str(error)) from error
        return connection

    return open_connection


def _hear_first_answer(connection: Connection) -> None:
    try:
        connection.version_for(ApiVersionsRequest.API_KEY)
    except BaseException:
        connection.close()
        raise
