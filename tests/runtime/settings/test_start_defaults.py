"""What a start chooses for topics: by its brokers, by what its directory is, and never over the user."""

from pathlib import Path

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog_runtime.settings.start_defaults import (
    chosen_defaults,
    defaults_in_words,
    differences_in_words,
    keep_defaults,
)

FACTOR, MIN_ISR = "default.replication.factor", "min.insync.replicas"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "defaults.properties"


@pytest.mark.parametrize(("brokers", "factor"), [(1, "1"), (2, "2"), (3, "3"), (9, "3")])
def test_topics_have_a_replica_on_each_of_up_to_three_brokers(kept: Path, brokers: int, factor: str) -> None:
    for is_new in (True, False):
        assert chosen_defaults({}, brokers, kept, is_new=is_new)[FACTOR] == factor


@pytest.mark.parametrize(("brokers", "chosen"), [(1, False), (2, False), (3, True), (9, True)])
def test_on_a_new_directory_of_three_brokers_writes_need_two_replicas(
    kept: Path, brokers: int, chosen: bool
) -> None:
    assert (chosen_defaults({}, brokers, kept, is_new=True).get(MIN_ISR) == "2") is chosen


def test_a_directory_that_had_topics_before_keeps_its_minimum(kept: Path) -> None:
    """Its topics of two replicas would stop with one of their brokers."""
    assert MIN_ISR not in chosen_defaults({}, 3, kept, is_new=False)


def test_a_later_start_chooses_what_the_first_one_chose_whatever_its_brokers(kept: Path) -> None:
    keep_defaults(kept, chosen_defaults({}, 3, kept, is_new=True))
    assert chosen_defaults({}, 3, kept, is_new=False) == {FACTOR: "3", MIN_ISR: "2"}
    assert chosen_defaults({}, 1, kept, is_new=False) == {FACTOR: "1", MIN_ISR: "2"}


def test_nothing_is_kept_that_the_number_of_brokers_gives_at_every_start(kept: Path) -> None:
    keep_defaults(kept, chosen_defaults({}, 2, kept, is_new=True))
    assert not kept.exists()


def test_what_the_user_says_stands_and_is_not_kept(kept: Path) -> None:
    given = {FACTOR: "2", MIN_ISR: "1"}
    chosen = chosen_defaults(given, 3, kept, is_new=True)
    keep_defaults(kept, chosen)
    assert (chosen, kept.exists()) == ({}, False)
    keep_defaults(kept, {MIN_ISR: "2"})
    assert chosen_defaults(given, 3, kept, is_new=False) == {}


def test_a_standby_controller_chooses_nothing(kept: Path) -> None:
    assert chosen_defaults({}, 0, kept, is_new=True) == {}


def test_a_file_that_is_no_settings_file_is_refused_by_name(kept: Path) -> None:
    kept.write_text("two\n")
    with pytest.raises(ConfigError, match=f"{kept}: line 1: 'two' is not of the form name=value"):
        chosen_defaults({}, 3, kept, is_new=False)


def test_a_start_says_both_in_words_and_by_name() -> None:
    assert defaults_in_words(BrokerConfig.parse({FACTOR: "3", MIN_ISR: "2"})) == (
        "topics have 3 replicas unless they say otherwise (default.replication.factor=3), and writes with "
        "acks=all need 2 in sync (min.insync.replicas=2); -c NAME=VALUE changes either"
    )
    assert "1 replica unless" in defaults_in_words(BrokerConfig())


def test_what_differs_from_the_controller_in_office_is_named_with_the_remedy() -> None:
    own = BrokerConfig.parse({FACTOR: "2", MIN_ISR: "2"})
    assert differences_in_words(own, {FACTOR: "3", MIN_ISR: "2", "unknown": "1"}, "host:9091") == [
        "default.replication.factor is 3 at the controller in office, host:9091, and 2 here: 3 counts, but "
        "once a controller of this application is elected, its own does; give all applications the same, "
        "here with -c default.replication.factor=3"
    ]
    assert differences_in_words(own, {}, "host:9091") == []
