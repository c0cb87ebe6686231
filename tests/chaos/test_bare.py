"""When a cluster of bare brokers is whole again."""

from types import SimpleNamespace

import pytest

from chaos.bare import BareBench
from chaos.bench import Bench, BenchOptions


@pytest.mark.parametrize(
    ("registered_at", "missing"),
    [
        (None, "broker 1 has not registered since its process was started"),
        (99.9, "broker 1 has not registered since its process was started"),
        (100.1, None),
    ],
)
def test_the_registration_that_a_killed_process_left_does_not_count_for_the_next_one(
    tmp_path, monkeypatch, registered_at, missing
):
    monkeypatch.setattr(Bench, "what_is_missing", lambda self: None)
    monkeypatch.setattr(Bench, "_registered_at", lambda self, broker_id: registered_at)
    bench = BareBench(BenchOptions(tmp_path))
    bench._kept = {1: SimpleNamespace(launched_at=100.0)}
    assert bench.what_is_missing() == missing
