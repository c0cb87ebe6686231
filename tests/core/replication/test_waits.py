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
