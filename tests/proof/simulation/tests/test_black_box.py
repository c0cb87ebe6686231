"""Clients alone notice bugs: with every look into brokers switched off, by what they saw of the cluster."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest

from histories.check import RULES, check
from histories.model import ACKS_ALL, Poll, Send
from simulation import black_box
from simulation import run as running
from simulation.clients.idempotent_producers import Producer
from simulation.dumps import dump_replicas
from simulation.invariants.invariant import Violation
from simulation.marks import Marks
from simulation.mutants import find_mutant
from simulation.plans.operations import Operation
from simulation.plans.plan import BROKERS, SIDE_TOPIC, draw_plan
from simulation.run import simulate
from sparklog.model.ids import TopicId, TopicPartition

SEEDS_MAX = 40
SEEN_BY_CLIENTS = {rule.name for rule in RULES} | {"GapsAreReal"}
"""The checker's rules, and the one that a producer holds itself: a gap that it is told of must be one."""
NOTICED = ("ack-on-append",)
NOTICED_LATER = (
    "truncate-to-high-watermark",
    "producers-are-forgotten",
    "read-beyond-high-watermark",
    "reads-sealed-segments-whole",
)


def notice(name):
    """The first seed at which clients see the bug; without it they see nothing in the same seed."""
    mutant = find_mutant(name)
    for seed in range(1, SEEDS_MAX + 1):
        plan = draw_plan(seed, hunt=mutant.hunt)
        violation = simulate(plan, mutant=mutant, for_clients_only=True).violation
        if violation is not None:
            assert violation.invariant in SEEN_BY_CLIENTS
            assert simulate(plan, for_clients_only=True).violation is None
            return
    raise AssertionError(f"no client sees {name} within {SEEDS_MAX} seeds")


@pytest.mark.parametrize("name", NOTICED)
def test_clients_notice_a_historical_bug_by_themselves(name):
    notice(name)


@pytest.mark.chaos
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", NOTICED_LATER)
def test_clients_notice_more_bugs_where_there_is_time(name):
    notice(name)


@pytest.fixture
def after_a_send(monkeypatch):
    """Ends a run at once with whatever history is handed to the judge."""
    seen = []

    def keep(history, limits):
        seen.append(history)
        raise KeyboardInterrupt

    monkeypatch.setattr("simulation.black_box.check", keep)
    return seen


def test_the_judge_is_given_every_send_and_a_final_read_of_every_partition(after_a_send):
    plans = (draw_plan(seed, without_faults=True) for seed in itertools.count(1))
    with pytest.raises(KeyboardInterrupt):
        simulate(next(plan for plan in plans if not plan.topic_configs))
    (history,) = after_a_send
    acknowledged = [send for send in history.sends if send.is_ok and send.acks]
    assert acknowledged
    assert all(isinstance(send, Send) and 0 <= send.invoked_ns <= send.done_ns for send in acknowledged)
    read = {(final.topic, final.partition, value) for final in history.finals for _, value in final.records}
    assert {(send.topic, send.partition, send.value) for send in acknowledged} <= read


# ---- what the simulation records for L9 and L11 --------------------------------------------------------


def quiet_plan():
    plans = (draw_plan(seed, without_faults=True) for seed in itertools.count(1))
    return next(
        plan for plan in plans if not plan.topic_configs and plan.mix.has_askers and not plan.operations
    )


@pytest.fixture
def history(monkeypatch):
    """Of a run without faults: nothing in it breaks a rule."""
    seen = []

    def keep(history, limits):
        seen.append((history, limits))
        return check(history, limits)

    monkeypatch.setattr("simulation.black_box.check", keep)
    assert simulate(quiet_plan()).violation is None
    (found,) = seen
    return found


def findings(history):
    return {finding.rule for finding in check(*history).findings}


def test_what_replicas_have_and_what_was_sent_at_rest_is_recorded(history):
    record, limits = history
    assert len({dump.broker for dump in record.dumps}) >= 3
    assert all(dump.records and dump.batches for dump in record.dumps)
    late = [send for send in record.sends if send.invoked_ns > record.healed_ns + limits.answer_ns]
    assert {send.partition for send in late} == {dump.partition for dump in record.dumps}
    assert all(poll.epochs for poll in record.reads if isinstance(poll, Poll) and poll.records)
    assert findings(history) == set()


def a_value_that_was_sent_twice(record):
    record.sends.append(replace(record.sends[-1]))


def no_final_read(record):
    record.finals.clear()


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (a_value_that_was_sent_twice, "was sent twice"),
        (no_final_read, "has acknowledged sends, and no final read"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_a_history_of_a_cluster_at_rest_that_cannot_be_judged_is_a_finding(history, monkeypatch, spoil, what):
    record, _ = history
    spoil(record)
    monkeypatch.setattr(black_box, "history_of", lambda *_, **unused: record)
    verdict = replace(check(*history), judgements=())  # whatever the rules find beside it
    monkeypatch.setattr(black_box, "check", lambda *_: verdict)
    witness = SimpleNamespace(recorder=SimpleNamespace(rested_us=-1), marks=Marks())
    with pytest.raises(Violation, match=f"HistoriesCanBeJudged: .*{what}"):
        black_box.judge(witness, [], is_at_rest=True)
    black_box.judge(witness, [], is_at_rest=False)


def a_batch_of_other_bytes(record):
    first, last, _ = record.dumps[0].batches[-1]
    record.dumps[0].batches[-1] = first, last, "another digest"


def a_record_of_another_epoch(record):
    offset, epoch, value = record.dumps[0].records[-1]
    record.dumps[0].records[-1] = offset, epoch + 1, value


def an_end_that_is_not_known_to_be_committed(record):
    record.dumps[0].high_watermark -= 1


def a_last_send_without_an_answer(record):
    last = max(record.sends, key=lambda send: send.invoked_ns if send.acks == ACKS_ALL else -1)
    last.outcome = "info"


def a_later_leader_that_tells_a_lower_end(record):
    last = record.ends[-1]
    last.leader_epoch, last.offset = last.leader_epoch + 1, 0


def an_earlier_leader_that_told_a_later_ones_records(record):
    first = next(one for one in record.ends if one.offset)
    for poll in record.reads:
        if isinstance(poll, Poll) and poll.partition == first.partition:
            poll.epochs = [(offset, first.leader_epoch + 1) for offset, _ in poll.epochs]


@pytest.mark.parametrize(
    ("doctor", "rule"),
    [
        (a_batch_of_other_bytes, "ReplicasAreEqual"),
        (a_record_of_another_epoch, "ReplicasAreEqual"),
        (an_end_that_is_not_known_to_be_committed, "ReplicasAreEqual"),
        (a_last_send_without_an_answer, "HealedClustersAnswer"),
        (a_later_leader_that_tells_a_lower_end, "TheEndNeverFallsBack"),
        (an_earlier_leader_that_told_a_later_ones_records, "TheEndNeverFallsBack"),
    ],
)
def test_a_doctored_record_is_noticed(history, doctor, rule):
    record, _ = history
    doctor(record)
    assert rule in findings(history)


@pytest.mark.parametrize("damage", ["bit", "end"])
def test_a_replica_whose_disk_has_something_else_at_rest_is_noticed(monkeypatch, damage):
    def damage_one(truths, brokers, recorder):
        truths, brokers = list(truths), list(brokers)
        data = next(
            inode.data
            for path, names in brokers[0].machine.disk.directories.items()
            for name, inode in names.items()
            if path.endswith(f"/{truths[0].topic_partition}") and name.endswith(".log") and inode.data
        )
        if damage == "bit":
            data[-1] ^= 1
        else:
            data.clear()
        dump_replicas(truths, brokers, recorder)

    monkeypatch.setattr("simulation.run.dump_replicas", damage_one)
    violation = simulate(quiet_plan()).violation
    assert violation is not None
    assert violation.invariant == "ReplicasAreEqual"


def test_a_cluster_at_rest_that_answers_no_producer_is_noticed(monkeypatch):
    send = Producer._send

    def send_while_there_is_unrest(producer, batch):
        if producer._place.recorder.rested_us < 0:
            send(producer, batch)
        else:
            batch.record.invoked_us = producer._place.schedule.now_us

    monkeypatch.setattr(Producer, "_send", send_while_there_is_unrest)
    violation = simulate(quiet_plan()).violation
    assert violation is not None
    assert violation.invariant == "HealedClustersAnswer"


# ---- topics that were made anew ------------------------------------------------------------------------


@pytest.fixture
def producers_of_before(monkeypatch):
    """When all is at rest first, producers know of an earlier topic, and of who led that."""
    hear = running._Run._hear_from_producers

    def hear_from_late_ones(run):
        for producer in run.producers:
            leader = run.cluster.witness.truths[producer.topic_partition].state.leader
            producer._topic_id = TopicId(int=1)
            producer._leader = next(host for host in BROKERS if host != f"broker-{leader}")
        hear(run)

    monkeypatch.setattr(running._Run, "_hear_from_producers", hear_from_late_ones)


@pytest.mark.usefixtures("producers_of_before")
def test_that_a_producer_gives_up_as_its_topic_is_another_one_is_no_missing_answer():
    assert simulate(quiet_plan()).violation is None


@pytest.mark.usefixtures("producers_of_before")
def test_a_cluster_that_never_tells_producers_of_the_new_topic_is_noticed(monkeypatch):
    found = Producer._found

    def found_while_there_is_unrest(producer, response):
        if producer._topic_id == TopicId(int=1):
            producer._not_found()
        else:
            found(producer, response)

    monkeypatch.setattr(Producer, "_found", found_while_there_is_unrest)
    violation = simulate(quiet_plan()).violation
    assert violation is not None
    assert violation.invariant == "ComesToRest"
    assert "a topic that was deleted" in violation.what


@pytest.mark.usefixtures("producers_of_before")
def test_a_topic_that_is_gone_before_its_producers_have_heard_of_it_is_given_nothing(monkeypatch):
    """As when a controller comes late to a deletion that was asked for twice."""
    plan = replace(quiet_plan(), operations=(Operation(0, 1_600, "create topic", 0.5),))
    tell, found, gone = running._Run._tell_of_new_topics, Producer._found, []

    def tell_while_it_is_deleted(run):
        run.cluster.administrator.do(Operation(1, 0, "delete topic", 0.5))
        tell(run)
        gone.append(TopicPartition(SIDE_TOPIC, 0) not in run.cluster.witness.truths)

    def found_when_it_is_gone(producer, response):
        is_there = producer.topic_partition in producer._place.witness.truths
        if producer._topic_id == TopicId(int=1) and producer.topic_partition.topic == SIDE_TOPIC and is_there:
            producer._not_found()
        else:
            found(producer, response)

    monkeypatch.setattr(running._Run, "_tell_of_new_topics", tell_while_it_is_deleted)
    monkeypatch.setattr(Producer, "_found", found_when_it_is_gone)
    assert simulate(plan).violation is None
    assert gone == [True]
