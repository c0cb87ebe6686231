"""A change under way holds its app, and the request that caused it is answered once."""

from sparklog.core.coordinator.actions import InDoubt, Refused, Reply, Token, WriteId
from sparklog.core.write_coordinator.app import Change
from sparklog.core.write_coordinator.requests import OpenWrite
from sparklog.core.write_coordinator.responses import OpenedWrite
from sparklog.core.write_coordinator.under_way import PendingChange, UnderWay
from sparklog.model.errors import ErrorCode

REQUEST = OpenWrite(app="app", version=1, run="run", attempt="0", timeout_ms=1_000, is_plain=False)
TOKEN, FIRST, SECOND = Token(7), WriteId(1), WriteId(2)


def test_an_app_is_held_until_its_record_is_decided():
    under_way = UnderWay()
    under_way.add(FIRST, PendingChange("app", Change()))
    under_way.add(SECOND, PendingChange("another", None))
    assert under_way.held == {"app", "another"}
    under_way.remove(FIRST)
    assert under_way.held == {"another"}
    under_way.check_invariants()


def test_an_app_that_is_being_forgotten_has_no_change():
    under_way = UnderWay()
    change = Change()
    under_way.add(FIRST, PendingChange("app", change))
    under_way.add(SECOND, PendingChange("another", None))
    assert under_way.of_apps() == {"app": change}


def test_a_request_whose_record_was_in_doubt_is_not_answered_again():
    pending = PendingChange("app", Change(), (TOKEN, REQUEST))
    error = ErrorCode.coordinator_not_available
    assert pending.refused(InDoubt(ErrorCode.request_timed_out)) == [Reply(TOKEN, OpenedWrite(error))]
    assert pending.refused(Refused(ErrorCode.not_enough_replicas)) == []


def test_requests_that_nothing_has_answered_wait():
    under_way = UnderWay()
    under_way.add(FIRST, PendingChange("app", Change(), (TOKEN, REQUEST)))
    under_way.add(SECOND, PendingChange("another", Change()))
    assert list(under_way.waiting()) == [(TOKEN, REQUEST)]
    under_way.clear()
    assert (list(under_way.waiting()), under_way.held) == ([], set())
