"""Names of writes have an owner, and values that are agreed upon belong to a principal."""

from typing import Any

import pytest

from sparklog.core.transaction_coordinator.settings import TransactionSettings
from sparklog.core.transaction_coordinator.transaction_machine import TransactionMachine
from sparklog.core.write_coordinator import agreements
from sparklog.core.write_coordinator.agreements import Agreements
from sparklog.core.write_coordinator.requests import Agree, Claim, EndWrite, OpenWrite
from sparklog.core.write_coordinator.responses import Agreed
from sparklog.core.write_coordinator.settings import WriteSettings
from sparklog.core.write_coordinator.transaction_state_machine import TransactionStateMachine
from sparklog.core.write_coordinator.write_machine import WriteMachine
from sparklog.model.errors import ErrorCode
from sparklog.model.write_outcomes import EndOutcome, OpenOutcome
from tests.core.coordinator.machine_dialogue import MachineDialogue
from tests.core.write_coordinator.dialogue import APP, ORDERS, TIMEOUT_MS

ALICE, BOB = Claim("User:alice", holds_right=False), Claim("User:bob", holds_right=False)
BOB_WITH_RIGHT = Claim("User:bob", holds_right=True)
NOBODY = Claim("", holds_right=False)
NOT_ALLOWED = ErrorCode.transactional_id_authorization_failed


class Shard(MachineDialogue):
    """The machine of a whole shard."""

    def __init__(self) -> None:
        machines = TransactionMachine(TransactionSettings()), WriteMachine(WriteSettings()), Agreements()
        super().__init__(TransactionStateMachine(*machines))
        self.load(())

    def ask(self, request: Any) -> Any:
        token = self.submit(request)
        return self.answers.get(token, token)

    def open(self, claim: Claim, version: int = 1, attempt: str = "a") -> Any:
        def request(number: int | None) -> OpenWrite:
            return OpenWrite(
                app=APP, version=version, run="run", attempt=attempt, timeout_ms=TIMEOUT_MS, is_plain=False,
                topics=(ORDERS,), fresh_write_number=number, claim=claim,
            )  # fmt: skip

        answer = self.ask(request(None))
        return self.ask(request(100)) if answer.outcome is OpenOutcome.NEEDS_WRITE_NUMBER else answer

    def end(self, claim: Claim, *, version: int = 1, is_commit: bool = False) -> Any:
        return self.ask(
            EndWrite(app=APP, version=version, run="run", is_commit=is_commit, is_plain=False, claim=claim)
        )

    def agree(self, principal: str, value: bytes | None = None, name: str = "cut-1") -> Any:
        return self.ask(Agree(name=name, value=value, principal=principal))

    def successor(self) -> "Shard":
        other = Shard()
        other.now_ms = self.now_ms
        other.load(self.log)
        return other


@pytest.fixture
def shard() -> Shard:
    return Shard()


def test_the_first_who_opens_a_name_owns_it_also_at_the_next_coordinator(shard: Shard) -> None:
    assert shard.open(ALICE).error is ErrorCode.none
    for coordinator in (shard, shard.successor()):
        for stranger in (BOB, NOBODY):
            assert coordinator.open(stranger, attempt="b").error is NOT_ALLOWED
            assert coordinator.end(stranger).error is NOT_ALLOWED
        assert coordinator.open(ALICE, attempt="b").error is ErrorCode.none


def test_a_denied_request_changes_nothing(shard: Shard) -> None:
    shard.open(ALICE)
    before = list(shard.log)
    shard.open(BOB, version=2)
    shard.end(BOB, version=2, is_commit=True)
    assert shard.log == before


def test_the_right_to_write_opens_names_of_others_and_leaves_them_their_owner(shard: Shard) -> None:
    shard.open(ALICE)
    assert shard.open(BOB_WITH_RIGHT, attempt="b").error is ErrorCode.none
    assert shard.end(BOB_WITH_RIGHT).outcome is EndOutcome.ABORTED
    assert shard.open(ALICE, version=2).error is not NOT_ALLOWED


def test_a_name_that_nobody_owns_passes_to_the_next_who_opens_a_write(shard: Shard) -> None:
    assert shard.end(NOBODY, is_commit=True).error is ErrorCode.none
    assert shard.open(BOB, version=2).error is ErrorCode.none
    assert shard.open(ALICE, version=2, attempt="b").error is NOT_ALLOWED


@pytest.mark.parametrize("is_commit", [True, False])
def test_the_end_of_a_write_that_was_never_opened_takes_the_name_too(shard: Shard, is_commit: bool) -> None:
    shard.end(ALICE, is_commit=is_commit)
    assert shard.open(BOB, version=2).error is NOT_ALLOWED
    assert shard.end(ALICE, version=3, is_commit=True).error is ErrorCode.none
    assert shard.open(BOB, version=4).error is NOT_ALLOWED


def test_each_principal_has_its_own_value_under_a_name(shard: Shard) -> None:
    assert shard.agree("User:alice", b"hers") == Agreed(value=b"hers")
    assert shard.agree("User:bob") == Agreed()
    assert shard.agree("User:bob", b"his") == Agreed(value=b"his")
    assert shard.agree("User:ANONYMOUS", b"anybody's") == Agreed(value=b"anybody's")
    for coordinator in (shard, shard.successor()):
        assert coordinator.agree("User:alice", b"late") == Agreed(value=b"hers")
        assert coordinator.agree("User:bob") == Agreed(value=b"his")
        assert coordinator.agree("User:ANONYMOUS") == Agreed(value=b"anybody's")


def test_a_principal_takes_up_its_share_and_leaves_the_others_theirs(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agreements, "AGREEMENTS_MAX", 4 * agreements.SHARE)
    for number in range(4):
        assert shard.agree("User:alice", b"v", f"cut-{number}").value == b"v"
    assert shard.agree("User:alice", b"v", "cut-4").error is ErrorCode.throttling_quota_exceeded
    assert shard.agree("User:bob", b"w", "cut-4").value == b"w"
    shard.now_ms += agreements.IN_USE_MS
    assert shard.agree("User:alice", b"v", "cut-5").value == b"v"
    assert shard.agree("User:alice", None, "cut-0").value is None, "her oldest made room"
    assert shard.agree("User:bob", None, "cut-4").value == b"w"
