"""How much of a history a log shares, after elections that lost records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.core.remote_log.lineage import Lineage
from sparklog.core.replication.epoch_history import EpochHistory


@pytest.mark.parametrize(
    ("own", "log_end", "shared"),
    [
        pytest.param([(1, 0), (4, 50)], 120, 100, id="it has all of the epoch of the copy"),
        pytest.param([(1, 0), (4, 50), (5, 80)], 120, 80, id="it lost the end of that epoch"),
        pytest.param([(1, 0), (4, 50)], 70, 70, id="it lags in that epoch"),
        pytest.param([(1, 0), (5, 50)], 120, 50, id="it lacks that epoch"),
        pytest.param([(1, 0), (5, 30)], 120, 30, id="and the end of the one before"),
        pytest.param([(5, 0)], 120, None, id="it has no epoch of the history"),
        pytest.param([], 0, None, id="it is empty"),
    ],
)
def test_the_end_of_the_greatest_common_epoch_is_shared(own, log_end, shared) -> None:
    history = Lineage(copier_epoch=4, end_offset=100, epochs=((1, 0), (4, 50)))
    assert history.end_shared_with(EpochHistory.of(own), log_end) == shared


def test_the_epochs_of_a_history_are_needed_by_a_log_without_the_epoch_of_the_copy() -> None:
    unread = Lineage(copier_epoch=4, end_offset=100)
    assert not unread.needs_epochs(EpochHistory.of([(4, 10)]))
    assert unread.needs_epochs(EpochHistory.of([(1, 0), (5, 10)]))
    assert unread.end_shared_with(EpochHistory.of([(1, 0), (5, 10)]), 20) is None


@given(data=st.data())
def test_whatever_is_elected_the_shared_part_is_what_both_logs_have(data) -> None:
    """Each leader begins with a prefix of some log that was, adds records, and may copy what it has."""
    logs: list[list[int]] = [[]]  # of each record, the epoch of its leader
    tier: tuple[Lineage, list[int]] | None = None
    for epoch in range(1, data.draw(st.integers(2, 7))):
        base = data.draw(st.sampled_from(logs))
        log = base[: data.draw(st.integers(0, len(base)))]
        own = history_of(log)
        own.assign(epoch, len(log))
        log += [epoch] * data.draw(st.integers(0, 4))
        logs.append(log)
        if tier is not None:
            lineage, held = tier
            common = next(
                (at for at, pair in enumerate(zip(log, held, strict=False)) if len(set(pair)) > 1), None
            )
            expected = min(len(log), len(held)) if common is None else common
            assert (lineage.end_shared_with(own, len(log)) or 0) == expected
        if log and data.draw(st.booleans()):
            end = data.draw(st.integers(1, len(log)))
            epochs = tuple((int(one), int(start)) for one, start in own.before(end))
            tier = Lineage(epoch, end, epochs), log[:end]


def history_of(log: list[int]) -> EpochHistory:
    own = EpochHistory()
    for offset, epoch in enumerate(log):
        own.assign(epoch, offset)
    return own
