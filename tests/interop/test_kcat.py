"""kcat, as the distribution builds it: what its user types."""

import shutil
import subprocess
import time

import pytest

from tests.waiting import until

pytestmark = [pytest.mark.clients, pytest.mark.integration]


@pytest.fixture
def kcat(target):
    program = shutil.which("kcat")
    if program is None:
        pytest.skip("kcat is not installed: sudo apt-get install kcat")

    def run(*arguments, stdin=""):
        line = [program, "-b", target.bootstrap_servers, *map(str, arguments)]
        done = subprocess.run(line, input=stdin, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_kcat_produces_headers_and_nulls_and_reads_by_format(kcat, topic):
    kcat("-P", "-t", topic, "-K:", "-Z", "-H", "h=1", "-z", "lz4", stdin="k:v\nempty:\n")
    read = kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%o %k %s %S %h\n")
    assert read.splitlines() == ["0 k v 1 h=1", "1 empty  -1 h=1"]


def test_kcat_queries_offsets_of_times(kcat, reference, topic):
    now = int(time.time() * 1000)
    reference.produce(topic=topic, records=[{"value": "v", "timestamp": now + n * 1000} for n in range(5)])
    assert kcat("-Q", "-t", f"{topic}:0:{now + 2500}").split() == [topic, "[0]", "offset", "3"]


def test_kcat_as_a_member_of_a_group(kcat, reference, make_topic, group):
    topic = make_topic(2)
    reference.produce(topic=topic, records=[{"value": f"{n}", "partition": n % 2} for n in range(10)])
    read = kcat("-G", group, "-q", "-e", "-X", "auto.offset.reset=earliest", topic)
    assert sorted(read.split()) == sorted(str(n) for n in range(10))
    until(lambda: reference.group_offsets(group=group) == [[topic, 0, 5], [topic, 1, 5]])
    reference.produce(topic=topic, records=[{"value": "later", "partition": 0}])
    assert kcat("-G", group, "-q", "-e", topic).split() == ["later"]


def test_kcat_with_an_idempotent_producer(kcat, reference, topic):
    kcat("-P", "-t", topic, "-X", "enable.idempotence=true", stdin="a\nb\n")
    read = reference.read(topic=topic, partition=0, start="earliest", count=2)
    assert [record["value"] for record in read] == ["a", "b"]
