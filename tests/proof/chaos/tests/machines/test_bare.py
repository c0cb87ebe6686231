"""When a cluster of bare brokers is whole again."""

from types import SimpleNamespace

import pytest

from chaos.machines.bare import BareBench
from chaos.machines.bench import Bench, BenchOptions


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


def test_a_broker_moves_between_two_ports_that_its_clients_know(tmp_path, monkeypatch):
    """Once all three had moved, librdkafka began again from addresses where nobody was, for good."""
    bench = BareBench(BenchOptions(tmp_path))
    kept = SimpleNamespace(launched_at=0.0, pid=1, let_go=lambda: None)
    monkeypatch.setattr(bench, "_start_services", lambda: None)
    monkeypatch.setattr(bench, "_start_candidate", lambda number, master: None)
    monkeypatch.setattr(bench, "_start_broker", lambda broker_id: kept)
    monkeypatch.setattr(bench, "_await", lambda is_so, what: None)
    bench._start()
    known = bench.access.bootstrap.split(",")
    assert len(known) == len(set(known)) == 2 * len(bench.brokers())
    for _ in range(3):
        before = bench.brokers()
        bench.launch_elsewhere(1)
        after = bench.brokers()
        assert before[1].port != after[1].port
        assert before[1].log_dirs != after[1].log_dirs
        assert {f"{one.host}:{one.port}" for one in after.values()} <= set(known)
