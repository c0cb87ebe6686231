"""Trespassers are denied whatever they ask for; a guest is let in by its rule alone."""

import threading

import pytest
from tests.waiting import until

from chaos.access import Access
from chaos.clients import trespass
from chaos.clients.client_parts import Settings
from chaos.denials import Denial, breaches, refusals
from histories import Writer, read_history
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

MINE = frozenset({"mine"})


@pytest.fixture(scope="module")
def cluster():
    with InProcessCluster(brokers=2, secure=True) as running:
        running.create_topic("mine", partitions=2)
        for partition in (0, 1):
            running.produce("mine", [b"secret"], partition=partition)
        yield running


def access_of(cluster, user):
    properties = cluster.as_user(user).properties
    password = properties["sasl.jaas.config"].split('"')[-2]
    return Access(cluster.bootstrap_servers, properties["ssl.truststore.location"], user, password)


def history_of(cluster, tmp_path, user, role, work, is_enough):
    """What the user's client tells until it is enough."""
    path = tmp_path / "history.jsonl"
    with Writer(path) as writer:
        access = access_of(cluster, user)
        settings = Settings(role, "any", f"{user}/0", access, {"mine": 2}, "", 1, acks=1, rate=50.0)
        settings.writer = writer
        thread = threading.Thread(target=work, args=(settings, writer))
        thread.start()
        try:
            until(lambda: is_enough(read_history(path)), lambda: path.read_text()[-1_000:])
        finally:
            settings.is_stopping = True
            thread.join()
    return read_history(path), path.read_text()


@pytest.mark.parametrize("work", [trespass.try_by_librdkafka, trespass.try_by_requests])
def test_a_trespasser_is_denied_every_write_and_every_read(cluster, tmp_path, work):
    denials = [Denial("mallory", MINE, 0)]

    def is_enough(history):
        return refusals(history, denials) >= 10

    history, lines = history_of(cluster, tmp_path, "mallory", "trespasser", work, is_enough)
    assert breaches(history, denials) == []
    assert {send.outcome for send in history.sends} == {"fail"}
    assert history.reads == []
    assert "thorization" in lines.lower() or "authorization" in lines.lower()


def test_who_is_allowed_what_a_trespasser_is_not_would_be_found_out(cluster, tmp_path):
    """The same requests with a right are answered: what denies them is the rule that lacks."""
    cluster.as_user("trudy")
    cluster.allow("trudy", "read", "write", topic="mine")
    denials = [Denial("trudy", MINE, 0)]

    def is_enough(history):
        return any(send.is_ok for send in history.sends) and history.reads

    history, _ = history_of(cluster, tmp_path, "trudy", "trespasser", trespass.try_by_requests, is_enough)
    told = "\n".join(breaches(history, denials))
    assert "may not write to mine" in told
    assert "may not read mine" in told


def test_a_guest_writes_to_the_leaders_that_it_finds_and_reads_nothing(cluster, tmp_path):
    cluster.as_user("gwen")
    cluster.allow("gwen", "write", topic="mine")

    def is_enough(history):
        return sum(send.is_ok for send in history.sends) >= 5

    history, _ = history_of(cluster, tmp_path, "gwen", "guest", trespass.try_by_requests, is_enough)
    assert {send.outcome for send in history.sends} <= {"ok", "fail"}
    assert history.reads == []
