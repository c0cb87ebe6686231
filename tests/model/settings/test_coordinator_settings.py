"""The settings of a cluster that is started with so many brokers."""

import pytest

from sparklog.model.settings.coordinator_settings import of_a_start

FACTOR = "transaction.state.log.replication.factor"
MIN_ISR = "transaction.state.log.min.isr"


@pytest.mark.parametrize(
    ("brokers", "factor", "min_isr"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (9, "3", "2")]
)
def test_internal_topics_fit_the_brokers_and_outlive_the_death_of_one_of_several(
    brokers: int, factor: str, min_isr: str
) -> None:
    made = of_a_start({}, brokers)
    assert made == {FACTOR: factor, "offsets.topic.replication.factor": factor, MIN_ISR: min_isr}


def test_what_the_user_says_stands() -> None:
    assert of_a_start({MIN_ISR: "2"}, 2) == {**of_a_start({}, 2), MIN_ISR: "2"}
