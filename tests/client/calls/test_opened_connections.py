"""A connection that is refused for good is not asked for again."""

from typing import Any, cast

import pytest

from sparklog.client.calls import opened_connections
from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.calls.opened_connections import opened_by
from sparklog.client.errors import SecurityRefused
from sparklog.network.dialing.connection import Connection
from sparklog.network.dialing.connector import Connector
from sparklog.network.dialing.peer_refused import TlsRefused
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest

HERE = Endpoint("here", 9093)
AN_ALERT = TlsRefused("here:9093 wants a certificate of this client: set ssl.keystore.location")


class PretendedConnection:
    """What it is asked for, and what the first answer is."""

    def __init__(self, first_answer: Exception | None = None) -> None:
        self.asked: list[int] = []
        self.is_closed = False
        self._first_answer = first_answer

    def version_for(self, api_key: int) -> int:
        self.asked.append(api_key)
        if self._first_answer is not None:
            raise self._first_answer
        return 3

    def close(self) -> None:
        self.is_closed = True


class PretendedConnector(Connector):
    """Hands out one connection, or an error."""

    def __init__(self, outcome: PretendedConnection | Exception) -> None:
        super().__init__()
        self._outcome = outcome

    def open(self, *_address: Any, **_terms: Any) -> Connection:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return cast(Connection, self._outcome)


def test_over_tls_a_connection_is_lent_once_its_first_answer_is_there() -> None:
    connection = PretendedConnection()
    opened: Any = opened_by(PretendedConnector(connection), "me")(HERE, 1_000)
    assert opened is connection
    assert connection.asked == [ApiVersionsRequest.API_KEY]


def test_in_the_clear_nothing_is_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = PretendedConnection()
    monkeypatch.setattr(opened_connections, "IN_THE_CLEAR", connector := PretendedConnector(connection))
    opened_by(connector, "me")(HERE, 1_000)
    assert connection.asked == []


def test_a_refusal_in_the_handshake_is_final_and_keeps_its_words() -> None:
    open_connection = opened_by(PretendedConnector(AN_ALERT), "me")
    with pytest.raises(SecurityRefused, match=r"here:9093 wants .* set ssl\.keystore\.location"):
        open_connection(HERE, 1_000)


@pytest.mark.parametrize(
    ("heard", "kind"),
    [
        (AN_ALERT, SecurityRefused),
        (TimeoutError("silent"), TimeoutError),
        (ConnectionError("ended"), OSError),
    ],
)
def test_what_comes_in_place_of_the_first_answer_closes_the_connection(
    heard: Exception, kind: type[Exception]
) -> None:
    connection = PretendedConnection(heard)
    with pytest.raises(kind):
        opened_by(PretendedConnector(connection), "me")(HERE, 1_000)
    assert connection.is_closed
