"""A connection has one user at a time, is used again when it is whole, and never otherwise."""

from typing import Any

import pytest

from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.calls.connections import IDLE_MAX_MS, IDLE_PER_BROKER_MAX, ConnectionPool
from sparklog.client.errors import ClientClosed
from sparklog.model.time import MonotonicMs, WallMs

HERE = Endpoint("here", 9092)


class Clock:
    now_ms = 0

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(self.now_ms)

    def wall_ms(self) -> WallMs:
        return WallMs(self.now_ms)


class PretendedConnection:
    is_closed = False

    def close(self) -> None:
        self.is_closed = True


def pool_and_clock() -> tuple[ConnectionPool, Clock]:
    clock = Clock()
    return ConnectionPool(lambda _endpoint, _timeout_ms: PretendedConnection(), clock), clock  # type: ignore[return-value,arg-type]


def borrow(pool: ConnectionPool) -> Any:
    return pool.borrow(HERE, 1_000)


def test_a_connection_given_back_is_lent_again_and_one_in_use_is_not() -> None:
    pool, _ = pool_and_clock()
    first, second = borrow(pool), borrow(pool)
    assert first is not second
    pool.give_back(HERE, first)
    assert borrow(pool) is first


def test_a_discarded_connection_is_closed_and_not_lent_again() -> None:
    pool, _ = pool_and_clock()
    connection = borrow(pool)
    pool.discard(connection)
    assert connection.is_closed
    assert borrow(pool) is not connection


def test_a_connection_that_was_idle_for_long_is_replaced() -> None:
    pool, clock = pool_and_clock()
    connection = borrow(pool)
    pool.give_back(HERE, connection)
    clock.now_ms = IDLE_MAX_MS + 1
    assert borrow(pool) is not connection
    assert connection.is_closed


def test_idle_connections_are_limited() -> None:
    pool, _ = pool_and_clock()
    connections = [borrow(pool) for _ in range(IDLE_PER_BROKER_MAX + 1)]
    for connection in connections:
        pool.give_back(HERE, connection)
    assert [connection.is_closed for connection in connections] == [False] * IDLE_PER_BROKER_MAX + [True]


def test_closing_the_pool_closes_lent_and_idle_connections_and_ends_lending() -> None:
    pool, _ = pool_and_clock()
    lent, idle = borrow(pool), borrow(pool)
    pool.give_back(HERE, idle)
    pool.close()
    assert lent.is_closed
    assert idle.is_closed
    with pytest.raises(ClientClosed):
        borrow(pool)
