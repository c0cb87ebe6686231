"""A cluster that is secured by commands, and what is noted of brokers that do not follow a change."""

from types import SimpleNamespace

import pytest

from chaos.access import SCRAM
from chaos.machines import secured_changes
from chaos.machines.secured import MECHANISMS
from chaos.machines.secured_changes import Changing
from chaos.nemesis import Broker
from chaos.teams import BLUE, GUEST, LENT, LOAN, RED, rights_of
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import LoginDenied
from sparklog.model.errors import KafkaError
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

RIGHTS = rights_of([LENT], ["ledger"], "shared", "pipeline")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """The cluster, and its owner."""
    root = tmp_path_factory.mktemp("secured")
    owner = Changing(root / "security", ["127.0.0.1"])
    with InProcessCluster(root, brokers=1, secure=True, settings=owner.more_settings) as cluster:
        for topic in (LENT, "ledger"):
            cluster.create_topic(topic, partitions=1, replication_factor=1)
        owner.open_to(cluster.bootstrap_servers, RIGHTS)
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        broker = Broker(1, 0, host, int(port), ())
        yield owner, SimpleNamespace(brokers=lambda: {1: broker})


@pytest.fixture
def owner(running):
    found = running[0]
    found.findings.clear()
    found.denials.clear()
    return found


@pytest.fixture
def brokers(running):
    return running[1]


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(secured_changes, "BINDS_S", 0.5)
    monkeypatch.setattr(secured_changes, "READ_AGAIN_S", 0.5)


def topics_seen_by(access):
    with ClusterClient(access.bootstrap, connector=access.connector()) as client:
        return set(client.metadata(None).topics)


def test_each_team_sees_its_own_topics_and_the_guest_the_one_that_is_lent(owner):
    seen = {team: topics_seen_by(owner.access_of(team)) for team in (RED, BLUE, GUEST)}
    assert seen == {RED: {LENT}, BLUE: {"ledger"}, GUEST: {LENT}}
    assert {LENT, "ledger"} <= topics_seen_by(owner.admin)


def test_a_rule_that_is_taken_denies_the_guest_until_it_is_back(owner, brokers):
    owner.call_in_loan(brokers)
    with pytest.raises(KafkaError):
        ask_for_the_loan(owner)
    owner.lend(brokers)
    ask_for_the_loan(owner)
    assert owner.findings == []
    (denial,) = owner.denials
    assert (denial.who, denial.topics) == ("guest-1", {LENT})
    assert denial.since_ns < denial.until_ns


def ask_for_the_loan(owner):
    access = owner.access_of(GUEST)
    with ClusterClient(access.bootstrap, connector=access.connector()) as client:
        client.topic(LENT)


def test_a_rule_that_stays_where_it_was_taken_is_a_finding(owner, brokers, impatient, monkeypatch):
    monkeypatch.setattr(owner, "administer", lambda *words, **more: None)
    owner.call_in_loan(brokers)
    owner.lend(brokers)
    assert owner.findings == ["broker 1 serves the guest 0.5 s after its rule was taken"]


def test_a_broker_that_does_not_answer_is_none_that_is_late(owner, impatient, monkeypatch):
    nobody = SimpleNamespace(brokers=lambda: {1: Broker(1, 0, "127.0.0.1", 1, ())})
    monkeypatch.setattr(owner, "administer", lambda *words, **more: None)
    owner.call_in_loan(nobody)
    owner.lend(nobody)
    assert owner.findings == []


def test_a_team_moves_to_another_password_and_the_old_one_ends(owner):
    before = owner.access_of(RED)
    owner.begin_rotation(RED)
    after = owner.access_of(RED)
    assert {before.mechanism, after.mechanism} == set(MECHANISMS)
    assert topics_seen_by(before) == topics_seen_by(after) == {LENT}
    owner.end_rotation()
    assert owner.findings == []
    assert topics_seen_by(after) == {LENT}
    with pytest.raises(LoginDenied):
        topics_seen_by(before)


def test_an_old_password_that_still_counts_is_a_finding(owner, impatient, monkeypatch):
    owner.begin_rotation(BLUE)
    monkeypatch.setattr(owner, "administer", lambda *words, **more: None)
    owner.end_rotation()
    assert owner.findings == [f"team {BLUE} logs in by its old password 0.5 s after its deletion"]
    assert owner.access_of(BLUE).mechanism != SCRAM


def test_a_rotation_that_did_not_begin_has_no_end(owner):
    owner.end_rotation()
    assert owner.findings == []


def test_renewed_certificates_are_shown_by_every_broker(owner, brokers):
    owner.renew()
    owner.check_renewed(brokers)
    assert owner.findings == []


def test_a_broker_with_an_old_certificate_is_a_finding(owner, brokers, impatient, monkeypatch):
    monkeypatch.setattr(owner, "_shown_by_file", lambda: "another one")
    owner.renew()
    owner.check_renewed(brokers)
    assert "sparklog security renew has left the certificate of brokers as it was" in owner.findings
    assert "broker 1 shows an old certificate 0.5 s after" in owner.findings


def test_no_secret_is_in_a_file_that_others_may_read(owner):
    owner.write_settings({"a": "b"})
    owner.write_spark_file()
    open_to_others = {path.name for path in owner.folder.iterdir() if path.stat().st_mode & 0o077}
    assert open_to_others <= {"ca.pem", "client.properties"}


def test_a_right_is_said_in_words_of_the_command():
    assert LOAN.words == ["--topic", LENT, "--operation", "write"]
    assert RIGHTS[BLUE][-1].words == [
        "--transactional-id", "writes-", "--operation", "write", "--prefixed",
    ]  # fmt: skip
