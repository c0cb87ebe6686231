"""Plain producers of librdkafka keep their order over a killed and a paused leader, and the judge sees it."""

import pytest

from chaos.bugs import OF_ORDER
from chaos.order.brokers import Brokers
from chaos.order.rounds import kill, pause, prepare

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

SESSION_MS = 2_000


@pytest.fixture
def brokers_with(tmp_path):
    """Called with bugs that are in every broker."""
    opened = []

    def open_with(*bugs):
        brokers = Brokers(tmp_path, session_ms=SESSION_MS, bugs=bugs)
        opened.append(brokers.__enter__())
        prepare(brokers)
        return brokers

    yield open_with
    for brokers in opened:
        brokers.__exit__(None, None, None)


def test_records_are_in_order_after_a_kill_and_a_pause(brokers_with):
    brokers = brokers_with()
    for strike in (kill, pause):
        done = strike(brokers, 0)
        assert done.judged > 0
        assert done.findings == ()


@pytest.mark.parametrize("bug", OF_ORDER)
def test_what_disordered_them_in_a_pause_is_found(brokers_with, bug):
    assert pause(brokers_with(bug), 0).out_of_order > 0
