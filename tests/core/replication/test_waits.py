"""The purgatory's books."""

from sparklog.core.replication.waits import FORGOTTEN_MAX, ProduceWaits


def test_forgotten_produces_take_no_memory_while_the_watermark_stands_still() -> None:
    waits = ProduceWaits()
    waits.add(0, 10)
    for token in range(1, 10_000):
        waits.add(token, 20)
        waits.forget(token)
        assert len(waits._heap) <= FORGOTTEN_MAX + 3
    assert waits.take_satisfied(20) == [0]


def test_what_outlasts_its_epoch_is_taken_once_in_order_and_only_as_far_as_the_log_goes() -> None:
    waits = ProduceWaits()
    for token, offset in ((1, 30), (2, 20), (3, 10), (4, 10)):
        waits.add(token, offset, outlasts=token < 4)
    waits.forget(3)
    waits.add(5, 5, outlasts=True)
    assert waits.take_outlasting(20) == [(5, 5), (20, 2)]
    assert waits.take_outlasting(20) == []
    assert waits.take_all() == [4, 1]
    assert waits.take_outlasting(99) == []
