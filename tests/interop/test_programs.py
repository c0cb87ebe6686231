"""Programs that other people run: each does its work once, with nothing lost or doubled."""

import json
import subprocess
from collections.abc import Callable

import pytest

from tests.interop.clients import CACHE, why_missing

pytestmark = [pytest.mark.clients, pytest.mark.integration, pytest.mark.timeout(400)]

PROGRAM_SECONDS = 120


@pytest.fixture
def values(reference) -> Callable[[str], list[str]]:
    """The values that librdkafka reads of a topic's partition 0, of committed transactions alone."""

    def read(topic: str, count: int) -> list[str]:
        found = reference.read(topic=topic, partition=0, start="earliest", count=count, committed=True)
        return [one["value"] for one in found]

    return read


def test_platformatic_kafka_with_four_idempotent_producers(target, topic, group, values):
    """Each of them names the producer id 0 in the epoch 0 when it asks for one."""
    fetched = CACHE / "platformatic"
    if (why := why_missing(fetched)) is not None:
        pytest.skip(why)
    line = ["node", str(fetched / "program.mjs"), target.bootstrap_servers, topic, group, "400"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PROGRAM_SECONDS)
    assert done.returncode == 0, done.stderr
    wanted = sorted(f"{producer}-{nth}" for producer in range(4) for nth in range(400))
    assert sorted(json.loads(done.stdout)["read"]) == wanted
    in_log = values(topic, len(wanted))
    assert sorted(in_log) == wanted
    for producer in range(4):
        of_one = [value for value in in_log if value.startswith(f"{producer}-")]
        assert of_one == [f"{producer}-{nth}" for nth in range(400)], "its order"
