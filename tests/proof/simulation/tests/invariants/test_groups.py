"""The rules of groups fire where a log or an answer is wrong, and nowhere else."""

from types import SimpleNamespace

import pytest

from simulation.clients.groups.offsets import OUTSIDER, Committer
from simulation.invariants import groups as rules_of_groups
from simulation.invariants.groups import GroupRules
from simulation.invariants.invariant import Violation
from simulation.truth import Entry
from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.group.records import GroupKey, GroupValue, MemberValue, OffsetKey, OffsetValue
from sparklog.model.ids import TopicPartition

QUAKES = TopicPartition("quakes", 0)
ANNA, BERT = Committer(3, "anna", None), Committer(3, "bert", None)


class Log:
    """What a partition's committed log gets; each record is a batch in leader epoch ``epoch``."""

    def __init__(self, rules):
        self.epoch = 0
        self._rules = rules
        self._truth = SimpleNamespace(topic_partition=TopicPartition("__consumer_offsets", 0))

    def takes(self, *records):
        batches = [SimpleNamespace(record=record, leader_epoch=self.epoch) for record in records]
        self._rules.on_commit(self._truth, SimpleNamespace(log=self, part=lambda entry: None), batches)

    def may_have_lost(self, partitions):
        self._rules.on_loss(self._truth, partitions)


def generation(number, *names):
    members = tuple(MemberValue(name, None, "", "", 1, 1, b"", name.encode()) for name in names)
    return GroupValue("consumer", number, "by-turns", names[0] if names else None, 0, members)


def begins(number, *names):
    return StateRecord(GroupKey("g"), generation(number, *names))


def commit(value):
    return StateRecord(OffsetKey("g", QUAKES), OffsetValue(1, -1, value, 0))


@pytest.fixture
def rules():
    rules = GroupRules()
    rules.know("g")
    rules.on_commit_sent("g", "anna 3", ANNA)
    rules.on_commit_sent("g", "bert 3", BERT)
    rules.on_commit_sent("g", "somebody", OUTSIDER)
    return rules


@pytest.fixture
def log(monkeypatch, rules):
    monkeypatch.setattr(rules_of_groups, "records_in", lambda log, batch: (batch.record,))
    return Log(rules)


def test_members_of_the_generation_commit(log):
    log.takes(begins(3, "anna", "bert"), commit("anna 3"), commit("bert 3"))


def test_nobody_commits_behind_the_next_generation(log):
    log.takes(begins(3, "anna"), commit("anna 3"), begins(4, "anna"))
    with pytest.raises(Violation, match=r"CommitsAreOfTheGeneration: g: anna 3, of anna in generation 3"):
        log.takes(commit("anna 3"))


def test_nobody_commits_who_is_no_member(log):
    log.takes(begins(3, "anna"))
    with pytest.raises(Violation, match=r"bert 3, of bert in generation 3, .* members are \('anna',\)"):
        log.takes(commit("bert 3"))


def test_outsiders_commit_to_groups_without_members_only(log):
    log.takes(commit("somebody"), begins(3, "anna"), begins(4), commit("somebody"), begins(5, "anna"))
    with pytest.raises(Violation, match="an outsider, is in the log while"):
        log.takes(commit("somebody"))


def test_nobody_commits_between_join_and_assignment(log):
    log.takes(begins(2, "anna"), commit("anna 3"))
    with pytest.raises(Violation, match="before its members had shares"):
        log.takes(begins(3, "anna"))


def test_a_generation_that_was_never_written_may_begin_again_in_another_epoch(log):
    log.takes(begins(2, "anna"), commit("anna 3"))
    log.epoch = 1
    log.takes(begins(3, "anna"))


def test_generations_rise_until_their_group_is_deleted(log):
    log.takes(begins(3, "anna"), begins(3, "bert"), StateRecord(GroupKey("g"), None), begins(1, "anna"))
    log.takes(begins(4, "anna"))
    with pytest.raises(Violation, match="GenerationsRise: g: generation 2 is in the log behind 4"):
        log.takes(begins(2, "anna"))


def test_a_commit_that_nobody_sent_is_found(log):
    with pytest.raises(Violation, match="CommitsAreReal"):
        log.takes(commit("a ghost"))


def test_a_group_that_nobody_has_is_found(log):
    with pytest.raises(Violation, match="GroupsAreKnown"):
        log.takes(StateRecord(GroupKey("other"), generation(1, "anna")))


def test_what_was_answered_is_in_the_log_at_the_latest_when_all_is_at_rest(rules, log):
    log.takes(begins(3, "anna"))
    rules.on_assigned("g", ANNA, b"anna")
    rules.on_commit_answered("g", QUAKES, "anna 3")
    log.takes(commit("anna 3"))
    rules.check_what_is_owed()
    rules.on_commit_answered("g", QUAKES, "bert 3")
    with pytest.raises(Violation, match="AnsweredCommitsAreInTheLog: g: the commit bert 3"):
        rules.check_what_is_owed()


def test_a_share_that_is_not_in_the_log_is_found(rules, log):
    log.takes(begins(3, "anna"))
    rules.on_assigned("g", ANNA, b"all of it")
    with pytest.raises(Violation, match="SharesAreInTheLog: g: the share"):
        rules.check_what_is_owed()


def test_nothing_is_judged_of_a_group_that_an_election_may_have_lost(rules, log):
    lost = []
    rules.on_lost = lost.append
    log.takes(begins(3, "anna"))
    log.may_have_lost(partitions=1)
    log.takes(commit("bert 3"), begins(1, "anna"))
    rules.on_commit_answered("g", QUAKES, "anna 3")
    rules.check_what_is_owed()
    assert lost == ["g"]


def test_other_topics_are_none_of_its_business(rules):
    truth = SimpleNamespace(topic_partition=QUAKES)
    rules.on_commit(truth, SimpleNamespace(log=None), [Entry(0, 1, 0, -1, -1, -1, 5)])
