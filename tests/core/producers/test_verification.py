"""Guards of verification: what a coordinator's answer may still be used for."""

import pytest

from sparklog.core.producers.verification import ATTEMPT_MAX_MS, Verifications
from sparklog.model.ids import ProducerId
from sparklog.model.time import MonotonicMs

A, B = ProducerId(1), ProducerId(2)
NOW = MonotonicMs(1_000)


def test_a_guard_holds_for_its_producer_and_epoch_alone():
    verifications = Verifications()
    guard = verifications.begin(A, 3, NOW)
    assert verifications.holds(guard, A, 3)
    assert not verifications.holds(guard, A, 4)
    assert not verifications.holds(guard, B, 3)


@pytest.mark.kafka_bug(
    "K30",
    "KAFKA-14402, KIP-890",
    "A transactional record after its abort marker opened a transaction without an end.",
)
def test_kafka_14402_a_guard_is_void_once_a_marker_came_in_between():
    verifications = Verifications()
    guard = verifications.begin(A, 0, NOW)
    verifications.end(A)
    assert not verifications.holds(guard, A, 0)
    later = verifications.begin(A, 0, NOW)
    assert verifications.holds(later, A, 0)
    assert not verifications.holds(guard, A, 0), "an answer about the transaction that ended"


def test_attempts_of_one_epoch_share_their_guard():
    verifications = Verifications()
    assert verifications.begin(A, 0, NOW) is verifications.begin(A, 0, NOW)
    assert verifications.begin(A, 0, NOW) is not verifications.begin(B, 0, NOW)


def test_a_newer_epoch_voids_the_older_ones_guard_and_an_older_epoch_gets_a_void_one():
    verifications = Verifications()
    old = verifications.begin(A, 0, NOW)
    new = verifications.begin(A, 1, NOW)
    late = verifications.begin(A, 0, NOW)
    assert not verifications.holds(old, A, 0)
    assert not verifications.holds(late, A, 0)
    assert verifications.holds(new, A, 1)


def test_an_epoch_that_its_coordinator_does_not_know_leaves_the_present_one_alone():
    verifications = Verifications()
    verifications.begin(A, 7, NOW).is_refused = True
    present = verifications.begin(A, 0, NOW)
    assert verifications.holds(present, A, 0)
    assert verifications.begin(A, 0, NOW) is present


def test_attempts_that_nobody_ended_are_forgotten():
    verifications = Verifications()
    guard = verifications.begin(A, 0, NOW)
    verifications.begin(B, 0, MonotonicMs(NOW + 1))
    verifications.forget_what_is_old(MonotonicMs(NOW + ATTEMPT_MAX_MS))
    assert len(verifications) == 1
    assert not verifications.holds(guard, A, 0)
