"""Each rule says what it looked at: one that found nothing to look at is told as not judged, and why."""

import json

import pytest

from histories import History, Limits, check
from histories.check import RULES
from histories.report import as_json, as_lines
from histories.tests.breaches import BROKEN

LIMITS = Limits(acks_min=0)
NAMES = [rule.name for rule in RULES]


@pytest.fixture
def whole(scribe):
    """A history in which every rule has something to judge, and none is broken."""
    scribe.send("a", 0)
    scribe.send("b", 1)
    scribe.send("c", 2, acks=1)
    scribe.poll(0, (0, "a"), (1, "b"), (2, "c"))
    scribe.end(3)
    scribe.commit("1", process="consumer")
    scribe.committed("1")
    scribe.assigned("m", "t-0")
    scribe.heal()
    scribe.tick(100)
    scribe.send("d", 3)
    scribe.poll(3, (3, "d"))
    scribe.final((0, "a"), (1, "b"), (2, "c"), (3, "d"))
    for broker in ("1", "2"):
        scribe.dump(broker, (0, 0, "a"), (1, 0, "b"), (2, 0, "c"), (3, 0, "d"))
    return scribe


def no_sights(it):
    it.history.reads.clear()
    it.history.finals.clear()
    it.history.dumps.clear()


def no_reads(it):
    it.history.reads.clear()


def empty_polls_only(it):
    it.history.reads.clear()
    it.poll(0)


def no_final(it):
    it.history.finals.clear()


def a_deleted_topic(it):
    it.topic(is_created=False)


def a_topic_made_anew(it):
    it.topic(is_created=False)
    it.topic(is_created=True)


def a_lossy_election(it):
    it.tick(100)
    it.leader(7, is_unclean=True)


def acks_1_only(it):
    for send in it.history.sends:
        send.acks = 1


def acks_all_only(it):
    for send in it.history.sends:
        send.acks = -1


def no_offsets_in_answers(it):
    for send in it.history.sends:
        send.offset = -1


def no_idempotence(it):
    for send in it.history.sends:
        send.is_idempotent = False


def a_session_for_each_send(it):
    for send in it.history.sends:
        send.session = send.value


def no_ends(it):
    it.history.ends.clear()


def no_heal(it):
    it.history.healed_ns = -1


def neither_heal_nor_final(it):
    no_heal(it)
    no_final(it)


def a_heal_at_the_very_end(it):
    it.heal()


def no_reads_of_commits(it):
    it.history.committed.clear()


def a_lost_group(it):
    it.group_lost()
    it.history.groups_lost[0].at_ns = 0


def no_assignments(it):
    it.history.assigned.clear()


def no_commits(it):
    it.history.commits.clear()


def no_dumps(it):
    it.history.dumps.clear()


LACKING = {
    "OneValuePerOffset": [
        (no_sights, "no second looks at an offset"),
    ],
    "AcknowledgedWritesStay": [
        (acks_1_only, "no sends acknowledged with acks=all"),
        (no_final, "no final read (3)"),
        (a_deleted_topic, "topic deleted (3)"),
        (a_topic_made_anew, "topic deleted (3)"),
        (a_lossy_election, "lossy election (3)"),
    ],
    "LeadersLoseWithAnElectionOnly": [
        (acks_all_only, "no sends acknowledged with acks=1"),
        (no_final, "no final read (1)"),
        (a_deleted_topic, "topic deleted (1)"),
        (no_offsets_in_answers, "no offset in the answer (1)"),
    ],
    "NothingIsInvented": [
        (no_sights, "no records read"),
    ],
    "NothingIsDoubled": [
        (no_idempotence, "no records of idempotent producers"),
        (no_final, "no final read (4)"),
    ],
    "ProducersKeepTheirOrder": [
        (a_session_for_each_send, "no records behind others of their session"),
        (no_final, "no final read (4)"),
    ],
    "OrderIsReal": [
        (acks_1_only, "no acknowledged records behind others"),
        (no_final, "no final read (3)"),
        (a_deleted_topic, "topic deleted (3)"),
    ],
    "ReadsAreRepeatable": [
        (no_reads, "no polled records"),
        (no_final, "no final read (4)"),
        (a_topic_made_anew, "topic deleted (4)"),
    ],
    "PollsGoOn": [
        (no_reads, "no polls with records, or after others"),
        (empty_polls_only, "no polls with records, or after others"),
    ],
    "TheEndNeverFallsBack": [
        (no_ends, "no answers to ListOffsets(latest)"),
        (no_reads, "nothing certain to hold against (1)"),
    ],
    "EverythingIsSeen": [
        (no_heal, "no heal (3)"),
        (neither_heal_nor_final, "no heal (3)"),
        (no_final, "no final read (3)"),
        (a_heal_at_the_very_end, "no poll after the heal (3)"),
    ],
    "HealedClustersAnswer": [
        (no_heal, "no heal (3)"),
        (a_heal_at_the_very_end, "no sends with acks=all so long after healing"),
        (a_deleted_topic, "topic deleted (1)"),
    ],
    "ReplicasAreEqual": [
        (no_dumps, "no dumps of replicas' logs"),
        (a_deleted_topic, "topic deleted (2)"),
    ],
    "CommittedOffsetsAreARegister": [
        (no_reads_of_commits, "no committed offsets read"),
        (a_lost_group, "group lost (1)"),
    ],
    "OneOwnerInAGeneration": [
        (no_assignments, "no assignments"),
        (a_lost_group, "group lost (1)"),
    ],
    "GroupsAreGivenEverything": [
        (no_commits, "no records of partitions in which a group commits"),
        (no_heal, "no heal (4)"),
        (no_final, "no final read (1)"),
        (a_lost_group, "group lost (4)"),
    ],
}
"""For each rule: how a history comes to lack its matter, and what is said of the rule then."""

OF_TRANSACTIONS = {rule.name for rule in RULES if rule.number.startswith(("T", "W"))}
"""``test_judged_transactions`` has these."""

EVERY_LACK = [
    (name, *lack)
    for name in NAMES
    if name not in OF_TRANSACTIONS
    for lack in LACKING.get(name, [(None, None)])
]


def line_of(name, verdict):
    (line,) = (line for line in as_lines(verdict) if line[5:].startswith(f"{name} "))
    return line


def in_json(name, verdict):
    (one,) = (one for one in as_json(verdict)["rules"] if one["rule"] == name)
    return one


def test_all_rules_judge_a_history_that_has_everything(whole):
    verdict = check(whole.history, LIMITS)
    assert verdict.is_clean
    assert {one.rule.name for one in verdict.judgements if not one.is_judged} == OF_TRANSACTIONS
    judged = len(RULES) - len(OF_TRANSACTIONS)
    assert list(as_lines(verdict))[-1] == f"clean: {judged} of {len(RULES)} rules judged"


@pytest.mark.parametrize(
    ("name", "take_away", "why"), EVERY_LACK, ids=[f"{one[0]}-{one[2]}" for one in EVERY_LACK]
)
def test_a_rule_without_its_matter_is_not_judged_and_says_why(whole, name, take_away, why):
    assert take_away is not None, f"say in LACKING what {name} judges, and what it says without it"
    assert in_json(name, check(whole.history, LIMITS))["judged"] > 0
    take_away(whole)
    verdict = check(whole.history, LIMITS)
    assert line_of(name, verdict).endswith(f" not judged: {why}")
    told = in_json(name, verdict)
    assert (told["judged"], told["why_not_judged"]) == (0, why)


def test_an_empty_history_has_no_rule_judged_and_is_not_clean():
    verdict = check(History(), LIMITS)
    lines = list(as_lines(verdict))
    assert [name for name in NAMES if " not judged: no " not in line_of(name, verdict)] == []
    assert lines[-2:] == [
        "INVALID: no rule had anything to judge",
        f"INVALID: 0 of {len(RULES)} rules judged",
    ]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_was_judged(scribe, name):
    rule, write = BROKEN[name]
    write(scribe)
    (judged,) = (one.judged for one in check(scribe.history, LIMITS).judgements if one.rule.name == rule)
    assert judged.count > 0


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("OneValuePerOffset", "ok, 15 second looks at an offset"),  # 4 offsets, 19 sights
        ("AcknowledgedWritesStay", "ok, 3 sends acknowledged with acks=all"),
        ("LeadersLoseWithAnElectionOnly", "ok, 1 sends acknowledged with acks=1"),
        ("NothingIsInvented", "ok, 16 records read"),
        ("NothingIsDoubled", "ok, 4 records of idempotent producers"),
        (
            "ProducersKeepTheirOrder",
            "ok, 3 records behind others of their session",
        ),
        ("OrderIsReal", "ok, 2 acknowledged records behind others"),
        ("ReadsAreRepeatable", "ok, 4 polled records"),
        ("PollsGoOn", "ok, 2 polls with records, or after others"),
        ("TheEndNeverFallsBack", "ok, 1 answers to ListOffsets(latest)"),
        ("EverythingIsSeen", "ok, 3 sends acknowledged with acks=all"),
        ("HealedClustersAnswer", "ok, 1 sends with acks=all so long after healing"),
        ("ReplicasAreEqual", "ok, 2 dumps of replicas' logs"),
        ("CommittedOffsetsAreARegister", "ok, 1 committed offsets read"),
        ("OneOwnerInAGeneration", "ok, 1 assignments"),
        ("GroupsAreGivenEverything", "ok, 4 records of partitions in which a group commits"),
    ],
)
def test_a_rule_that_is_kept_says_how_much_it_judged(whole, name, told):
    assert line_of(name, check(whole.history, LIMITS)).endswith(f" {told}")


def test_what_a_rule_left_out_is_told_beside_what_it_judged(scribe):
    scribe.send("a", 0)
    scribe.topic(is_created=False)
    scribe.topic(is_created=True)
    scribe.send("b", 0)
    scribe.send("c", 0, partition=1)
    scribe.final((0, "b"))
    verdict = check(scribe.history, LIMITS)
    told = "ok, 1 sends acknowledged with acks=all; not judged: topic deleted (1), no final read (1)"
    assert line_of("AcknowledgedWritesStay", verdict).endswith(told)
    assert in_json("AcknowledgedWritesStay", verdict)["left_out"] == {
        "topic deleted": 1,
        "no final read": 1,
    }


def test_an_answer_that_may_be_of_either_topic_of_a_name_is_left_out_of_values_at_offsets(scribe):
    send = scribe.begin("a")
    scribe.topic(is_created=False)
    scribe.answer(send, offset=0)
    scribe.topic(is_created=True)
    scribe.send("b", 0)
    scribe.final((0, "b"))
    told = "ok, 1 second looks at an offset; not judged: topic deleted (1)"
    assert line_of("OneValuePerOffset", check(scribe.history, LIMITS)).endswith(told)


def test_what_a_leader_acknowledged_before_a_lossy_election_is_left_out(scribe):
    scribe.send("a", 0, acks=1, leader_epoch=1)
    scribe.leader(2, is_unclean=True)
    scribe.send("b", 0, acks=1, leader_epoch=2)
    scribe.final((0, "b"))
    told = "ok, 1 sends acknowledged with acks=1; not judged: lossy election (1)"
    assert line_of("LeadersLoseWithAnElectionOnly", check(scribe.history, LIMITS)).endswith(told)


def test_acknowledged_sends_that_are_not_judged_are_counted_by_reason(scribe):
    for value in ("a", "b"):
        scribe.send(value, -1)
    scribe.topic(is_created=False)
    scribe.topic(is_created=True)
    scribe.send("c", 0)
    scribe.tick(100)
    scribe.leader(2, is_unclean=True)
    scribe.tick(100)
    scribe.send("d", 0)
    scribe.final((0, "d"))
    scribe.send("e", 0, partition=1)
    verdict = check(scribe.history, LIMITS)
    counts = {"topic deleted": 2, "lossy election": 1, "no final read": 1}
    assert verdict.figures.not_judged == counts
    assert json.loads(json.dumps(as_json(verdict)))["not_judged"] == counts
    told = "topic deleted (2), lossy election (1), no final read (1)"
    assert f"acknowledged with acks=all, and not judged: {told}" in list(as_lines(verdict))
