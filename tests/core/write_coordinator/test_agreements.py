"""Agreements: the first value counts, for all who ask, also after the coordinator moved. Bounded room."""

import pytest

from sparklog.core.coordinator.actions import InDoubt, Refused, Written
from sparklog.core.recent_events import IllegalTransition
from sparklog.core.transaction_coordinator.settings import TransactionSettings
from sparklog.core.transaction_coordinator.transaction_machine import TransactionMachine
from sparklog.core.write_coordinator import agreements
from sparklog.core.write_coordinator.agreements import Agreements
from sparklog.core.write_coordinator.requests import Agree
from sparklog.core.write_coordinator.responses import Agreed
from sparklog.core.write_coordinator.settings import WriteSettings
from sparklog.core.write_coordinator.transaction_state_machine import TransactionStateMachine
from sparklog.core.write_coordinator.write_machine import WriteMachine
from sparklog.model.errors import ErrorCode
from sparklog.model.internal_topics import AGREED_BYTES_MAX
from tests.core.coordinator.machine_dialogue import MachineDialogue

DAY_MS = 86_400_000


class Dialogue(MachineDialogue):
    """With the machine of a whole shard."""

    def __init__(self):
        super().__init__(
            TransactionStateMachine(
                TransactionMachine(TransactionSettings()), WriteMachine(WriteSettings()), Agreements()
            )
        )

    def ask(self, name, value=None):
        """The answer, or the token of a request that waits."""
        token = self.submit(Agree(name=name, value=value))
        return self.answers.get(token, token)

    def successor(self):
        other = Dialogue()
        other.now_ms = self.now_ms
        other.load(self.log)
        return other


@pytest.fixture
def world():
    return Dialogue()


def test_the_first_value_counts_for_all_who_ask(world):
    assert world.ask("cut") == Agreed()
    assert world.ask("cut", b"first") == Agreed(value=b"first")
    assert world.ask("cut", b"second") == Agreed(value=b"first")
    assert world.ask("cut") == Agreed(value=b"first")
    assert world.ask("another") == Agreed()


def test_nobody_is_told_a_value_before_it_is_replicated(world):
    world.takes = False
    first = world.ask("cut", b"v")
    assert world.answers == {}
    (write,) = world.writes
    assert (write.key, write.holds_key) == ("cut", True)
    world.become(write, Written())
    assert world.answers[first] == Agreed(value=b"v")


def test_the_next_coordinator_knows_what_was_agreed(world):
    world.ask("cut", b"v")
    other = world.successor()
    assert other.ask("cut", b"late") == Agreed(value=b"v")


def test_an_empty_value_is_a_value(world):
    assert world.ask("cut", b"") == Agreed(value=b"")
    assert world.ask("cut", b"late") == Agreed(value=b"")


def test_a_record_that_the_log_refuses_agrees_nothing(world):
    world.takes = False
    token = world.ask("cut", b"v")
    world.become(world.writes.pop(), Refused(ErrorCode.not_enough_replicas))
    assert world.answers[token] == Agreed(ErrorCode.coordinator_not_available)
    assert world.ask("cut") == Agreed()


def test_a_record_in_doubt_is_answered_once_and_counts_when_it_is_written(world):
    world.takes = False
    token = world.ask("cut", b"v")
    write = world.writes.pop()
    world.become(write, InDoubt(ErrorCode.request_timed_out))
    assert world.answers[token] == Agreed(ErrorCode.coordinator_not_available)
    world.become(write, Written())
    assert world.ask("cut", b"late") == Agreed(value=b"v")


def test_an_agreement_is_forgotten_a_day_after_its_last_use(world):
    world.ask("used", b"1")
    world.ask("unused", b"2")
    world.pass_time(DAY_MS - 1)
    world.ask("used")
    world.pass_time(1)
    assert world.ask("unused") == Agreed()
    assert world.ask("used") == Agreed(value=b"1")
    assert world.successor().ask("unused") == Agreed()
    assert world.machine.next_deadline_ms() == 2 * DAY_MS


def test_a_new_coordinator_takes_an_agreement_as_used_just_now(world):
    world.ask("cut", b"1")
    world.pass_time(DAY_MS - 1)
    other = world.successor()
    other.pass_time(DAY_MS - 1)
    assert other.ask("cut") == Agreed(value=b"1")


def test_a_tombstone_that_the_log_refuses_leaves_the_value_to_the_next_coordinator(world):
    world.ask("cut", b"1")
    world.takes = False
    world.pass_time(DAY_MS)
    world.become(world.writes.pop(), Refused(ErrorCode.not_enough_replicas))
    assert world.ask("cut") == Agreed()
    assert world.successor().ask("cut") == Agreed(value=b"1")


def test_many_are_forgotten_in_pieces(world):
    for number in range(450):
        world.ask(str(number), b"v")
    world.takes = False
    for size in (200, 200, 50):
        world.pass_time(DAY_MS)
        assert len(world.writes.pop().records) == size
    assert world.writes == []


def test_what_was_not_used_for_longest_makes_room_unless_it_is_in_use(world, monkeypatch):
    monkeypatch.setattr(agreements, "AGREEMENTS_MAX", 2)
    world.ask("a", b"1")
    world.ask("b", b"2")
    world.pass_time(599_999)
    world.ask("a")
    assert world.ask("c", b"3") == Agreed(ErrorCode.throttling_quota_exceeded)
    assert world.ask("b", b"late") == Agreed(value=b"2"), "what was agreed is answered as ever"
    world.pass_time(600_000)
    assert world.ask("c", b"3") == Agreed(value=b"3")
    assert [world.ask(name) for name in "ab"] == [Agreed(), Agreed(value=b"2")]
    assert world.machine.counts()["agreements_refused"] == 1


def test_the_bytes_of_all_values_are_bounded(world, monkeypatch):
    monkeypatch.setattr(agreements, "TOTAL_BYTES_MAX", 1_000)
    assert world.ask("large", b"v" * 900).error is ErrorCode.throttling_quota_exceeded
    assert world.ask("a", b"v" * 300).error is ErrorCode.none
    assert world.ask("b", b"v" * 300).error is ErrorCode.throttling_quota_exceeded
    world.pass_time(600_000)
    assert world.ask("b", b"v" * 300).error is ErrorCode.none
    assert world.ask("a") == Agreed()


def test_who_waits_when_the_coordinator_resigns_is_told(world):
    world.takes = False
    token = world.ask("cut", b"v")
    world.carry_out(world.machine.on_resigned())
    assert world.answers[token] == Agreed(ErrorCode.not_coordinator)


def test_an_outcome_of_no_record_is_a_bug(world):
    with pytest.raises(IllegalTransition, match="which is not under way"):
        world.machine.agreements.on_written(agreements.FIRST_AGREEMENT_WRITE_ID + 9, Written(), world.now)


@pytest.mark.parametrize(
    ("name", "value", "is_refused"),
    [
        ("", None, True),
        ("n" * 1_001, b"", True),
        ("n" * 1_000, b"v" * AGREED_BYTES_MAX, False),
        ("n", b"v" * (AGREED_BYTES_MAX + 1), True),
    ],
)
def test_names_and_values_are_bounded(name, value, is_refused):
    invalid = Agree(name=name, value=value).invalid()
    assert invalid == (Agreed(ErrorCode.invalid_request) if is_refused else None)
