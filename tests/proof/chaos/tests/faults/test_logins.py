"""Changes of security as faults: what each asks of the administrator, and how its end undoes it."""

from random import Random
from types import SimpleNamespace

import pytest

from chaos.faults.logins import RenewCertificates, RotatePassword, TakeRule, all_of_logins
from chaos.nemesis import LOGINS
from chaos.teams import BLUE, RED


class Asked:
    """An administrator who notes what is asked."""

    def __init__(self):
        self.said = []

    def __getattr__(self, name):
        def ask(*given):
            self.said.append((name, *(one for one in given if isinstance(one, str))))
            return name

        return ask


@pytest.fixture
def cluster():
    return SimpleNamespace(security=Asked(), session_timeout_s=4.0)


@pytest.mark.parametrize(
    ("nemesis", "begun", "ended"),
    [(RenewCertificates(), "renew", "check_renewed"), (TakeRule(), "call_in_loan", "lend")],
)
def test_each_begins_and_ends_once_however_often_it_is_told_to_end(cluster, nemesis, begun, ended):
    assert nemesis.begin(cluster, Random(1)) == begun
    nemesis.end()
    nemesis.end()
    assert cluster.security.said == [(begun,), (ended,)]


def test_either_teams_password_is_rotated(cluster):
    nemesis, teams = RotatePassword(), set()
    for seed in range(20):
        nemesis.begin(cluster, Random(seed))
        nemesis.end()
        teams.add(cluster.security.said[-2][1])
    assert teams == {RED, BLUE}


def test_what_never_began_has_no_end(cluster):
    for nemesis in all_of_logins():
        nemesis.end()
    assert cluster.security.said == []


def test_each_needs_logins_and_strikes_alone():
    assert all(nemesis.needs == {LOGINS} and nemesis.is_alone for nemesis in all_of_logins())


def test_a_strike_that_fails_half_way_is_undone_at_its_end(cluster):
    def fails(cluster):
        raise RuntimeError("no broker answers")

    cluster.security.call_in_loan = fails
    nemesis = TakeRule()
    with pytest.raises(RuntimeError):
        nemesis.begin(cluster, Random(1))
    nemesis.end()
    assert cluster.security.said == [("lend",)]
