"""How fast connections are opened, by Kafka's rules."""

import pytest

from sparklog.core.client_quotas.connection_rates import (
    ADDRESSES_MAX,
    UNLIMITED_RATE,
    ConnectionRates,
)
from sparklog.core.client_quotas.sampled_rate import Windows
from sparklog.model.time import MonotonicMs


@pytest.fixture
def rates() -> ConnectionRates:
    return ConnectionRates(Windows(samples=11, sample_ms=1_000))


def now(ms: int) -> MonotonicMs:
    return MonotonicMs(1_000_000 + ms)


def test_a_burst_is_spread_over_the_window_and_what_exceeds_it_waits_a_second_at_most(rates) -> None:
    delays = [rates.on_connection("A", 2, UNLIMITED_RATE, now(0)) for _ in range(40)]
    assert delays[:20] == [0] * 20
    assert delays[20] == 500  # one of two a second too many
    assert set(delays[22:]) == {1_000}


def test_connections_below_the_rate_never_wait(rates) -> None:
    assert {rates.on_connection("A", 2, 2, now(600 * number)) for number in range(200)} == {0}


def test_the_rates_of_broker_and_listener_hold_both(rates) -> None:
    assert [rates.on_connection("A", UNLIMITED_RATE, 1, now(0)) for _ in range(11)][-1] == 1_000
    assert rates.on_connection("B", UNLIMITED_RATE, 1, now(0)) == 1_000
    assert rates.on_connection("C", 0, UNLIMITED_RATE, now(0)) == 1_000


def test_the_listener_of_brokers_is_not_held_by_the_brokers_rate_and_does_not_count_there(rates) -> None:
    for _ in range(100):
        assert rates.on_connection("BROKERS", UNLIMITED_RATE, None, now(0)) == 0
    assert rates.on_connection("A", UNLIMITED_RATE, 1, now(0)) == 0
    assert [rates.on_connection("BROKERS", 1, None, now(0)) for _ in range(11)][-1] == 1_000


def test_a_connection_that_its_address_opens_too_early_does_not_count(rates) -> None:
    assert [rates.on_address("10.0.0.1", 1, now(0)) for _ in range(11)] == [0] * 10 + [1_000]
    for number in range(100):
        assert rates.on_address("10.0.0.1", 1, now(number)) > 0
    assert rates.on_address("10.0.0.1", 1, now(11_100)) == 0  # as if those hundred had not come
    assert rates.on_address("10.0.0.2", 1, now(0)) == 0
    assert rates.on_address("10.0.0.3", 0, now(0)) == 1_000
    assert rates.on_address("10.0.0.3", UNLIMITED_RATE, now(0)) == 0


def test_so_many_addresses_are_remembered_and_no_more(rates) -> None:
    for number in range(ADDRESSES_MAX + 50):
        rates.on_address(f"address {number}", 1, now(0))
    assert len(rates._by_address) == ADDRESSES_MAX
    rates.on_address("late", 1, now(60_000))
    assert set(rates._by_address) == {"late"}
