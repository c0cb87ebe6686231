"""No call with which a real broker changes its files goes past the shim: it counts what the kernel sees."""

import json
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.machines import shim
from chaos.machines.bare import BareBench
from chaos.machines.bench import BenchOptions
from chaos.machines.places import PlainPlaces
from chaos.machines.shim import CALLS
from chaos.part import BUSY_FILES

TRACED = Path(__file__).parents[2] / "machines" / "traced.py"
ROUNDS = 6


class TracedPlaces(PlainPlaces):
    """Every broker runs under the tracer."""

    def __init__(self, folder):
        super().__init__(with_shim=True)
        self._folder = folder

    def command(self, broker_id, command):
        watched = self.log_dir(self._folder, broker_id).parent
        counts = self._folder / f"traced-{broker_id}.json"
        return [sys.executable, str(TRACED), str(watched.resolve()), str(counts), *command]


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_the_shim_counts_every_call_that_the_tracer_sees_of_a_real_broker(tmp_path):
    if (why := shim.probe()) is not None:
        pytest.skip(f"not run: {why}")
    places = TracedPlaces(tmp_path)
    settings = {**BUSY_FILES, "min.insync.replicas": "1", "default.replication.factor": "1"}
    options = BenchOptions(tmp_path, brokers=1, spark="none", candidates=1, settings=settings)
    with BareBench(options, places) as bench:
        admin = AdminClient({**bench.access.confluent(), "log_level": 0})
        compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        admin.create_topics([NewTopic("keyed", 1, 1, config=compacted)])["keyed"].result(30)
        for number in range(ROUNDS):
            name = f"gone-{number}"
            admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
            producer = Producer({**bench.access.confluent(), "enable.idempotence": True, "log_level": 0})
            for at in range(60):
                producer.produce("keyed", bytes(400), f"key-{at % 5}", partition=0)
                producer.produce(name, bytes(400), partition=0)
            assert producer.flush(30) == 0
            admin.delete_topics([name])[name].result(30)
        bench.topics = {"keyed": 1}
        _await_removals(bench, places)
        assert bench.stop_application()
        counted = places.controls(1).counts()
    traced = json.loads((tmp_path / "traced-1.json").read_text())
    assert counted == {kind: traced.get(kind, 0) for kind in CALLS}
    assert all(counted.values()), f"a broker does each of them: {counted}"


def _await_removals(bench, places):
    """Topics that were deleted are removed from the disk a moment later."""
    bench._await(lambda: places.controls(1).counts()["remove directory"] >= ROUNDS, "all topics are gone")
