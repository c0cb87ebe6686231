"""``status --watch``: what stands on the screen, also while nobody answers."""

from typing import Any

from sparklog.cli.cluster.status.cluster_status import BrokerStatus, ClusterStatus
from sparklog.cli.cluster.status.status_text import render_status
from sparklog.cli.cluster.status.status_watch import Watched


def status(**fields: Any) -> ClusterStatus:
    broker = BrokerStatus(3, "node-4", -1, alive=False, state="no executor", reason="0 cores are free")
    return ClusterStatus("c", "127.0.0.1:9092", [broker], [], **fields)


def test_a_status_that_is_new_shows_no_age() -> None:
    watched = Watched()
    watched.came(status(), 100.0)
    assert watched.text(101.0) == render_status(status())


def test_while_nobody_answers_the_last_status_stays_with_its_age_and_the_reason() -> None:
    watched = Watched()
    watched.came(status(), 100.0)
    watched.failure = "no broker of 127.0.0.1:9092 answered"
    first, *rest = watched.text(112.4).splitlines()
    assert first == "as of 12 s ago; nobody answers: no broker of 127.0.0.1:9092 answered"
    assert rest == render_status(status()).splitlines()


def test_the_age_counts_from_what_the_controller_said() -> None:
    watched = Watched()
    watched.came(status(age_ms=30_000), 100.0)
    assert watched.text(101.0).startswith("as of 31 s ago\n")


def test_what_is_old_says_that_nobody_who_reaches_zookeeper_has_answered() -> None:
    words = "as of 40 s ago: no controller that reaches ZooKeeper has answered since"
    assert words in render_status(status(age_ms=40_000))
    assert "as of" not in render_status(status(age_ms=4_999))


def test_before_the_first_answer_the_reason_stands_alone() -> None:
    watched = Watched()
    assert watched.text(1.0) == "asking ..."
    watched.failure = "nobody is there"
    assert watched.text(1.0) == "nobody answers yet: nobody is there"


def test_an_answer_ends_the_failure() -> None:
    watched = Watched(failure="nobody is there")
    watched.came(status(), 100.0)
    assert (watched.failure, watched.number) == ("", 1)


def test_a_broker_that_does_not_serve_has_its_reason_below_the_table() -> None:
    lines = render_status(status()).splitlines()
    assert any(line.split() == ["3", "node-4", "no", "executor", "0", "0", "0"] for line in lines)
    assert "broker 3, no executor: 0 cores are free" in lines
