"""kcat (librdkafka, as the distribution builds it) against three brokers."""

import shutil
import subprocess

import pytest

pytestmark = pytest.mark.integration

KCAT = shutil.which("kcat")


def kcat(*arguments: str, stdin: str = "") -> str:
    assert KCAT is not None, "kcat is not installed: sudo apt-get install kcat"
    done = subprocess.run([KCAT, *arguments], input=stdin, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kcat_lists_brokers_topics_and_leaders(cluster) -> None:
    cluster.create_topic("kcat-list", partitions=3)
    listing = kcat("-b", cluster.bootstrap_servers, "-L")
    assert " 3 brokers:" in listing
    assert 'topic "kcat-list" with 3 partitions:' in listing
    assert listing.count("replicas: ") >= 3


@pytest.mark.scenario("S19", "Every codec goes in and comes out.")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kcat_produces_and_consumes_in_every_codec(cluster, codec) -> None:
    topic = f"kcat-{codec}"
    cluster.create_topic(topic, partitions=2)
    lines = [f"key{number}:value {number} " + "x" * 200 for number in range(500)]
    kcat(
        "-b", cluster.bootstrap_servers, "-P", "-t", topic, "-K", ":", "-z", codec, "-X", "acks=all",
        stdin="\n".join(lines),
    )  # fmt: skip
    read = kcat("-b", cluster.bootstrap_servers, "-C", "-t", topic, "-K", ":", "-o", "beginning", "-e", "-q")
    assert sorted(read.splitlines()) == sorted(lines)


def test_kcat_finds_the_offset_of_a_timestamp(cluster) -> None:
    cluster.create_topic("kcat-times")
    kcat("-b", cluster.bootstrap_servers, "-P", "-t", "kcat-times", stdin="a\nb\n")
    answer = kcat("-b", cluster.bootstrap_servers, "-Q", "-t", "kcat-times:0:0")
    assert answer.split() == ["kcat-times", "[0]", "offset", "0"]
