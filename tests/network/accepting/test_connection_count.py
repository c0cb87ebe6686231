"""How many connections a server keeps open, in all and from one address."""

from sparklog.core.client_quotas.sampled_rate import Windows
from sparklog.network.accepting.connection_count import ConnectionCount, ConnectionLimits, ListenerLimits
from sparklog.network.clock import SystemClock
from tests.waiting import until


def count_of(limits):
    return ConnectionCount(lambda: limits, SystemClock())


def test_an_address_has_its_own_limit_or_that_of_all_addresses(caplog):
    count = count_of(ConnectionLimits(per_address=1, of_address={"10.0.0.1": 2, "10.0.0.2": 0}))
    assert [count.enter("10.0.0.1", "L") for _ in range(3)] == [None, None, 0]
    assert count.enter("10.0.0.2", "L") == 0
    assert [count.enter("10.0.0.3", "L") for _ in range(2)] == [None, 0]
    assert (count.total, count.refused) == (3, 3)
    assert caplog.text.count("raise max.connections.per.ip") == 3  # each address has a line of its own
    count.leave("10.0.0.3", "L")
    assert count.enter("10.0.0.3", "L") is None


def test_a_listener_is_full_by_its_own_limit_or_by_that_of_all():
    limits = ConnectionLimits(total=2, of_listener={"A": ListenerLimits(connections=1)}, protected="B")
    count = count_of(limits)
    assert [count.full(name) for name in "ABC"] == [None, None, None]
    count.enter("10.0.0.1", "A")
    assert count.full("A") == "all 1 of it are in use; raise its max.connections or close idle clients"
    assert count.full("C") is None
    count.enter("10.0.0.1", "C")
    assert count.full("C") == "all 2 are in use; raise max.connections or close idle clients"
    assert count.full("B") is None  # brokers come in whoever else is there
    count.enter("10.0.0.1", "B")
    assert count.total == 3


def test_whoever_waits_for_a_slot_is_woken_when_a_connection_ends():
    count, woken = count_of(ConnectionLimits(total=1)), []
    count.on_slot = lambda: woken.append(count.full("A"))
    count.enter("10.0.0.1", "A")
    count.leave("10.0.0.1", "A")
    assert woken == []  # nobody waited
    count.enter("10.0.0.1", "A")
    assert count.full("A") is not None
    count.leave("10.0.0.1", "A")
    assert woken == [None]


def test_an_address_that_opens_too_many_a_second_is_closed_later_and_others_are_not():
    rates = {"10.0.0.1": 1.0}
    count = ConnectionCount(ConnectionLimits, SystemClock(), lambda address: rates.get(address, 1e9))
    entered = [count.enter("10.0.0.1", "A") for _ in range(20)]
    assert entered[:10] == [None] * 10  # a burst after silence is spread over ten seconds
    assert all(delay_ms is not None and 0 < delay_ms <= 1_000 for delay_ms in entered[11:])
    assert count.enter("10.0.0.2", "A") is None


def test_an_address_whose_rate_is_nothing_never_comes_in(caplog):
    count = ConnectionCount(ConnectionLimits, SystemClock(), lambda address: 0.0)
    assert count.enter("10.0.0.1", "A") == 1_000
    assert "it opens more than 0 a second (connection_creation_rate: sparklog quotas --ip)" in caplog.text


def test_a_connection_above_the_rate_of_its_listener_waits_and_is_served(start_reactor, connect):
    """The eleventh of eleven comes in about a second late."""
    limits = ConnectionLimits(of_listener={"PLAINTEXT": ListenerLimits(rate=1)})
    reactor = start_reactor(connection_limits=lambda: limits)
    clients = [connect(reactor) for _ in range(11)]
    assert all(client.call(b"x") == b"x" for client in clients)


def test_a_connection_above_the_rate_of_its_address_is_closed_without_an_answer(start_reactor, connect):
    reactor = start_reactor(address_rate=lambda address: 0.5, rate_windows=Windows(11, 200))
    assert connect(reactor).call(b"x") == b"x"
    late = connect(reactor)
    late.send(b"y")
    assert late.is_closed_by_peer()
    assert reactor.connections_refused == 1


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
