"""``kcat -G``: a member of a group on the command line."""

import shutil
import subprocess

import pytest

pytestmark = pytest.mark.integration

KCAT = shutil.which("kcat")


def consumed(cluster, group: str, topic: str, count: int) -> list[str]:
    """The first ``count`` records that a member of ``group`` gets; it commits them."""
    assert KCAT is not None, "kcat is not installed: sudo apt-get install kcat"
    command = [KCAT, "-b", cluster.bootstrap_servers, "-q", "-c", str(count)]
    command += ["-X", "auto.offset.reset=earliest", "-G", group, topic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_member_continues_where_the_one_before_it_has_stopped(cluster) -> None:
    cluster.create_topic("kcat-group")
    cluster.produce("kcat-group", [f"v{number}" for number in range(10)])
    assert consumed(cluster, "kcat-group", "kcat-group", 4) == ["v0", "v1", "v2", "v3"]
    assert consumed(cluster, "kcat-group", "kcat-group", 6) == [f"v{number}" for number in range(4, 10)]


def test_a_group_subscribes_by_pattern(cluster) -> None:
    for name in ("kcat-pattern-a", "kcat-pattern-b"):
        cluster.create_topic(name)
        cluster.produce(name, [name])
    read = consumed(cluster, "kcat-pattern", "^kcat-pattern-.*", 2)
    assert sorted(read) == ["kcat-pattern-a", "kcat-pattern-b"]
