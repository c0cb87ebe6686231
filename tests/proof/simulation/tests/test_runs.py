"""Whole runs: calm ones, troubled ones, the same one twice."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from simulation.clients.idempotent_producers import Producer
from simulation.clients.plain_producers import PlainProducer
from simulation.plans.client_mix import ClientMix
from simulation.plans.faults import Fault, Hunt
from simulation.plans.plan import BROKERS, PLAIN, draw_plan
from simulation.run import simulate
from sparklog.core.producers.producer_state import BATCHES_KEPT
from sparklog.model.errors import ErrorCode

PROOF = str(Path(__file__).parents[2])

DIGESTS = """
from simulation.plans.plan import draw_plan
from simulation.run import simulate

for seed in (3, 12):
    outcome = simulate(draw_plan(seed), is_told=True)
    print(seed, outcome.violation, outcome.steps, len(outcome.lines), outcome.digest)
"""


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_cluster_that_nothing_happens_to_breaks_no_rule_and_comes_to_rest(seed):
    outcome = simulate(draw_plan(seed, without_faults=True))
    assert outcome.violation is None, outcome
    assert outcome.acknowledged > 20


def test_brokers_whose_fsyncs_fail_come_back_and_nothing_committed_is_missing():
    for seed in range(1, 7):
        plan = draw_plan(seed, without_faults=True)
        plan.settings.update({"log.segment.bytes": "500", "log.flush.offset.checkpoint.interval.ms": "500"})
        faults = tuple(
            Fault(
                number, 1_600 + 1_300 * number, "fail an fsync", BROKERS[(seed + number) % 3], "", 1_500, 1.0
            )
            for number in range(3)
        )
        outcome = simulate(plan.with_steps(faults), is_told=True)
        assert outcome.violation is None, outcome
        assert any("meets an error of its disk" in line for line in outcome.lines)


def test_batches_with_a_flipped_bit_are_refused_and_sent_again(monkeypatch):
    """Those without idempotence are told, or lose their connection (acks=0), and go on."""
    told, refused, answered = [], Producer._refused, PlainProducer._answered

    def note(self, send, error):
        told.append((self.acks, "idempotent", error))
        refused(self, send, error)

    def note_plain(self, record, response):
        answered(self, record, response)
        told.append((self.acks, record.outcome, response.responses[0].partition_responses[0].error_code))

    monkeypatch.setattr(Producer, "_refused", note)
    monkeypatch.setattr(PlainProducer, "_answered", note_plain)
    for seed in range(1, 5):
        plan = draw_plan(seed, without_faults=True)
        flips = tuple(
            Fault(number, 1_600, "flip bits", broker, "", 2_500, 0.4)
            for number, broker in enumerate(plan.brokers)
        )
        calm = replace(
            plan,
            producers=tuple(replace(one, in_flight_max=1) for one in plan.producers),
            topic_configs=PLAIN,
            mix=ClientMix(plain_acks=(0, 1, -1)),
        )
        outcome = simulate(calm.with_steps(flips), is_told=True)
        assert outcome.violation is None, outcome
        flipped = [line for line in outcome.lines if "a bit flips in byte" in line]
        assert len(flipped) == outcome.marks["a bit of a batch flipped on its way"]
        assert any("plain-0 " in line for line in flipped)
        assert any("flip bits (broker-1, 0.4)" in line for line in outcome.lines)
    corrupt = {(acks, whose) for acks, whose, error in told if error is ErrorCode.corrupt_message}
    assert corrupt == {(1, "idempotent"), (-1, "idempotent"), (1, "fail"), (-1, "fail")}


def launch_beside_broker_2(*faults):
    """It was killed, and comes back at 2,500 ms."""
    kill = Fault(0, 2_000, "kill broker", BROKERS[1], "", 500, 1.0)
    plan = draw_plan(2, without_faults=True)
    outcome = simulate(plan.with_steps((kill, *faults)), is_told=True)
    assert outcome.violation is None, outcome
    return outcome.lines


def test_a_hundred_processes_may_wait_for_zookeeper_at_once():
    """Each is on the stack of the one that began to wait after it; seed 92343."""
    twice = [
        Fault(number, 3_000 + number, "launch twice", BROKERS[1], "", 2_000, 1.0) for number in range(1, 21)
    ]
    assert launch_beside_broker_2(*twice)


def test_beside_a_broker_that_has_its_directories_nobody_else_starts():
    twice = Fault(1, 3_000, "launch twice", BROKERS[1], "", 1_000, 1.0)
    refused = [line for line in launch_beside_broker_2(twice) if "has stopped, the second" in line]
    assert refused
    assert all("is in use by broker-2#2" in line for line in refused)


def test_no_second_broker_is_launched_beside_a_broker_that_waits_for_zookeeper():
    cut_off = Fault(1, 1_900, "launch twice", BROKERS[1], "", 800, 1.0)  # its host is, whoever runs there
    twice = Fault(2, 2_600, "launch twice", BROKERS[1], "", 100, 1.0)
    lines = launch_beside_broker_2(cut_off, twice)
    struck = next(n for n, line in enumerate(lines) if "at 2600 ms" in line)
    opened = next(n for n, line in enumerate(lines) if "broker-2 " in line and "has no role" in line)
    assert struck < opened
    assert not any("is in use by" in line for line in lines)


def test_a_directory_whose_failure_is_told_after_all_was_mended_comes_back():
    """The second process meets the error, and the one that serves hears of it when it syncs; seed 1001324."""
    fails = Fault(0, 1_520, "fail a write", BROKERS[2], "", 464, 7.0)
    twice = Fault(1, 1_639, "launch twice", BROKERS[2], "", 342, 1.0)
    outcome = simulate(draw_plan(1001324, without_store=True).with_steps((fails, twice)), is_told=True)
    assert outcome.violation is None, outcome
    lines = outcome.lines
    told = [n for n, line in enumerate(lines) if "meets an error of its disk" in line]
    healed = next(n for n, line in enumerate(lines) if "HEALED" in line)
    again = [n for n, line in enumerate(lines) if "broker-3 " in line and "is launched" in line]
    assert told
    assert told[0] < healed < again[-1]


def test_the_same_seed_is_the_same_run_byte_for_byte_whatever_python_hashes():
    def digests(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": PROOF}
        done = subprocess.run(
            [sys.executable, "-c", DIGESTS], capture_output=True, text=True, check=True, env=environment
        )
        return done.stdout

    assert len({digests(hash_seed) for hash_seed in ("0", "1", "4711")}) == 1


def test_a_run_told_as_a_story_is_the_run_that_was_checked():
    plan = draw_plan(5)
    quiet, told = simulate(plan), simulate(plan, is_told=True)
    assert (quiet.steps, quiet.simulated_ms, quiet.acknowledged) == (
        told.steps,
        told.simulated_ms,
        told.acknowledged,
    )
    assert told.lines


def test_no_producer_goes_further_past_a_batch_without_an_answer_than_brokers_remember(monkeypatch):
    """Also where later batches had theirs: sent again, it would be out of order for ever."""
    ahead, held_back = [], []
    make, send_a_batch = Producer._make, Producer.send_a_batch

    def note(self):
        send_a_batch(self)
        if self.waiting:
            ahead.append(self._begun - self.waiting[0].number)

    def note_what_is_held_back(self):
        begun = self._begun
        make(self)
        held_back.append(self._begun == begun and not self.is_stopping and len(self.waiting) < BATCHES_KEPT)

    monkeypatch.setattr(Producer, "send_a_batch", note)
    monkeypatch.setattr(Producer, "_make", note_what_is_held_back)
    assert simulate(draw_plan(46)).violation is None
    assert max(ahead) == BATCHES_KEPT
    assert any(held_back)


def test_an_operator_stops_a_lone_leader_whose_uncommitted_end_rotted():
    plan = draw_plan(143, hunt=Hunt(kinds=("rot a batch", "cut zookeeper")))
    cuts = [replace(one, at_ms=one.at_ms + 120) for one in plan.faults if one.kind == "cut zookeeper"]
    rots = [one for one in plan.faults if one.kind == "rot a batch"]
    outcome = simulate(plan.with_steps((*rots, *cuts, *plan.operations)), is_told=True)
    assert outcome.violation is None
    stops, starts = (
        [number for number, line in enumerate(outcome.lines) if f"OPERATOR         {what} broker-3" in line]
        for what in ("stops", "starts")
    )
    assert len(stops) == len(starts) == 1
    assert any("quakes-0 leader 1 " in line for line in outcome.lines[stops[0] : starts[0]])


@pytest.mark.parametrize("steps_max", [1, 200, 1_500])
def test_a_limit_of_steps_ends_the_whole_run_there(steps_max):
    short = simulate(draw_plan(1, steps_max=steps_max))
    assert (short.violation, short.steps, short.is_complete) == (None, steps_max, False)


def test_a_limit_beyond_the_last_step_changes_nothing():
    plan = draw_plan(1)
    whole = simulate(plan, is_told=True)
    assert whole.is_complete
    assert simulate(draw_plan(1, steps_max=10**9), is_told=True).digest == whole.digest
