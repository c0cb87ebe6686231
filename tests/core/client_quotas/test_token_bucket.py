"""Tokens by a clock that is moved by hand."""

import pytest

from sparklog.core.client_quotas.sampled_rate import DELAY_MAX_MS, Windows
from sparklog.core.client_quotas.token_bucket import TokenBucket

RATE = 2.0
BURST = 22.0


def test_a_bucket_is_full_at_first_and_takes_more_than_it_holds_once():
    bucket = TokenBucket(Windows())
    assert bucket.left(RATE, 5_000) == BURST
    bucket.spend(30, RATE, 5_000)
    assert bucket.left(RATE, 5_000) == -8.0
    assert bucket.delay_ms(RATE, 5_000) == 4_000
    assert bucket.delay_ms(RATE, 9_000) == 0


def test_tokens_come_at_the_rate_up_to_a_burst():
    bucket = TokenBucket(Windows())
    bucket.spend(10, RATE, 0)
    assert bucket.left(RATE, 1_000) == 14.0
    assert bucket.left(RATE, 60_000) == BURST
    assert bucket.idle_from_ms == 5_000


def test_a_lowered_rate_takes_effect_at_once():
    bucket = TokenBucket(Windows())
    bucket.spend(12, RATE, 0)
    assert bucket.left(0.5, 0) == 5.5
    bucket.spend(6.5, 0.5, 0)
    assert bucket.delay_ms(0.5, 0) == 2_000


@pytest.mark.parametrize("spent", [0, 5])
def test_a_rate_of_nothing_allows_nothing(spent):
    bucket = TokenBucket(Windows())
    bucket.spend(spent, 0.0, 0)
    assert bucket.delay_ms(0.0, 0) == DELAY_MAX_MS
