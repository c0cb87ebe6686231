"""Agree, sent to a broker: the first value, and what is refused."""

import pytest

from sparklog.client.coordinator import NOT_READY
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.writes.agree import AgreeRequest
from tests.broker.handlers.writes.test_writes import TIMEOUT_MS, connection

__all__ = ["connection"]


@pytest.fixture
def ask(connection):
    def send(name, value=None):
        while True:
            answer = connection.call(AgreeRequest(name=name, value=value), timeout_ms=TIMEOUT_MS)
            if answer.error_code not in NOT_READY:
                return answer.error_code, None if answer.value is None else bytes(answer.value)

    return send


def test_the_first_value_is_answered_to_all(ask):
    asked = [ask("a"), ask("a", b"first"), ask("a", b"second"), ask("a")]
    assert asked == [(ErrorCode.none, value) for value in (None, b"first", b"first", b"first")]


def test_a_value_as_large_as_may_be_is_taken(ask):
    value = b"v" * (512 << 10)
    assert ask("large", value) == (ErrorCode.none, value)


TOO_LARGE = b"v" * ((512 << 10) + 1)


@pytest.mark.parametrize(("name", "value"), [("", b"v"), ("n" * 1_001, b"v"), ("n", TOO_LARGE)])
def test_names_and_values_beyond_their_bounds_are_refused(ask, name, value):
    assert ask(name, value) == (ErrorCode.invalid_request, None)
