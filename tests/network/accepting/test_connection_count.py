"""How many connections a server keeps open, in all and from one address."""

from sparklog.network.accepting.connection_count import ConnectionCount, ConnectionLimits
from sparklog.network.clock import SystemClock
from tests.waiting import until


def count_of(limits):
    return ConnectionCount(lambda: limits, SystemClock())


def test_an_address_has_its_own_limit_or_that_of_all_addresses(caplog):
    count = count_of(ConnectionLimits(per_address=1, of_address={"10.0.0.1": 2, "10.0.0.2": 0}))
    assert [count.enter("10.0.0.1") for _ in range(3)] == [True, True, False]
    assert not count.enter("10.0.0.2")
    assert [count.enter("10.0.0.3") for _ in range(2)] == [True, False]
    assert (count.total, count.refused) == (3, 3)
    assert caplog.text.count("raise max.connections.per.ip") == 3  # each address has a line of its own
    count.leave("10.0.0.3")
    assert count.enter("10.0.0.3")


def test_the_limit_of_all_connections_goes_before_that_of_an_address():
    count = count_of(ConnectionLimits(total=1, of_address={"10.0.0.1": 5}))
    assert [count.enter("10.0.0.1"), count.enter("10.0.0.1")] == [True, False]


def test_connections_above_the_limit_of_their_address_are_closed_at_once(start_reactor, connect):
    limits = ConnectionLimits(per_address=2)
    reactor = start_reactor(connection_limits=lambda: limits)
    clients = [connect(reactor) for _ in range(2)]
    assert all(client.call(b"x") == b"x" for client in clients)
    assert connect(reactor).is_closed_by_peer()
    clients.pop().close()
    until(lambda: reactor.connections == 1)
    assert connect(reactor).call(b"x") == b"x"
    limits = ConnectionLimits(per_address=3)  # changed while the server runs
    assert connect(reactor).call(b"x") == b"x"


def test_repeated_refusals_are_reported_two_seconds_later_although_nobody_connects(
    start_reactor, connect, caplog
):
    reactor = start_reactor(connection_limits=lambda: ConnectionLimits(per_address=0))
    for _ in range(5):
        assert connect(reactor).is_closed_by_peer()
    assert caplog.messages == [
        "connection from 127.0.0.1 refused: it has 0 open; raise max.connections.per.ip or close idle clients"
    ]
    until(lambda: len(caplog.messages) == 2)
    assert caplog.messages[1].startswith("4 more connections from 127.0.0.1 refused: it has 0 open;")
    assert reactor.connections_refused == 5


def test_refusals_that_are_not_reported_yet_are_reported_when_the_server_stops(
    start_reactor, connect, caplog
):
    reactor = start_reactor(connection_limits=lambda: ConnectionLimits(per_address=0))
    for _ in range(3):
        assert connect(reactor).is_closed_by_peer()
    reactor.stop()
    assert caplog.messages[-1].startswith("2 more connections from 127.0.0.1 refused")


def test_failed_handshakes_are_counted_by_listener_and_stage(caplog):
    count = count_of(ConnectionLimits())
    assert count.failed() == {}
    for _ in range(2):
        count.note_failure("TLS", "10.0.0.1", "SSL", "its certificate is not accepted")
    count.note_failure("login", "10.0.0.2", "SASL", "a wrong password")
    assert count.failed() == {("SSL", "TLS"): 2, ("SASL", "login"): 1}
    assert "connection from 10.0.0.1 refused: listener SSL, TLS: its certificate" in caplog.text
