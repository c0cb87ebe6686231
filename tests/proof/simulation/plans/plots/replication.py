"""Plots around leader epochs: elections in quick succession, between replicas that hear of them late."""

from itertools import combinations
from typing import Final

from simulation.plans.faults import (
    CONTROLLER,
    FIRST_FOLLOWER,
    LAST_FOLLOWER,
    LEADER,
    THAT_LEADER,
)
from simulation.plans.plots.plot import Plot, Script


def _leadership_to_and_fro(script: Script) -> None:
    """Leadership goes, by a preferred election, to a replica that does not hear of the leader before, and
    back when it dies: each has written what the other one has not, and was in the ISR all the time. It is
    what comparing histories is for. (Somebody must demand preferred elections.)"""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        first, preferred, _ = draw.sample(script.brokers, 3)
        script.add(at_ms, "kill broker", preferred, "", draw.uniform(50, 150), 1.0)
        apart_ms = at_ms + draw.uniform(350, 700)
        gone_ms = apart_ms + draw.uniform(500, 1_300)
        script.add(apart_ms, "cut link", first, preferred, gone_ms - apart_ms + 30, 0.0)
        script.add(gone_ms, "kill broker", preferred, "", draw.uniform(30, 300), 1.0)
        if draw.random() < 0.5:
            script.add(gone_ms, "delay frames", first, preferred, 1_000, 200.0)
        at_ms = gone_ms + 1_200


def _followers_that_cannot_fetch(script: Script) -> None:
    """Followers are cut off from their leader, and from nobody else, for longer than they may lag: it is left
    alone in the ISR. It is what looking at waiting writes again is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        leader, *others = draw.sample(script.brokers, len(script.brokers))
        for other in others:
            script.add(at_ms + draw.uniform(0, 100), "cut link", leader, other, 3_500, 0.0)
        at_ms += 4_500


def _answer_of_the_leader_before(script: Script) -> None:
    """A leader answers a follower that is ahead of it, but is none any more when its answer comes, and who
    leads by then is ahead as well. It is what asking for whom an answer was meant is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        ahead, between, third = draw.sample(script.brokers, 3)
        script.add(at_ms, "cut link", between, third, 3_000, 0.0)
        script.add(at_ms, "delay frames", between, ahead, 3_000, 1_500.0)
        gone_ms = at_ms + draw.uniform(300, 700)
        script.add(gone_ms, "kill broker", ahead, "", draw.uniform(20, 80), 1.0)
        script.add(gone_ms - 200, "cut zookeeper", between, "", 3_000, 0.0)
        at_ms += 4_000


def _promise_to_a_new_leader(script: Script) -> None:
    """A follower that is told everything late goes on fetching from the leader that it knows, which is
    deposed by a preferred election, and elected again. Only then it hears of the one in between, who thinks
    that it leads still, and has less. It is what the epoch in a fetch is for: who is counted in it obeys no
    earlier leader. (Somebody must demand preferred elections.)"""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        leader, between, follower = draw.sample(script.brokers, 3)
        script.add(at_ms, "kill broker", between, "", 100, 1.0)
        late_ms = at_ms + draw.uniform(220, 350)
        script.add(late_ms, "cut link", leader, between, 4_500, 0.0)
        for controller in script.controllers:
            script.add(late_ms, "delay frames", controller, follower, 4_500, 6_000.0)
        script.add(late_ms + draw.uniform(600, 1_000), "cut zookeeper", between, "", 5_000, 0.0)
        at_ms = late_ms + 6_500


def _newcomer_that_stops_fetching(script: Script) -> None:
    """A replica that is about to join the ISR can fetch no more, while the proposal to count it does not get
    through to the controller; then it does. It is what waiting for whoever was proposed is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        newcomer, *others = draw.sample(script.brokers, len(script.brokers))
        back_ms = at_ms + draw.choice((300, 800)) + draw.uniform(0, 200)
        cut_ms = back_ms + draw.uniform(400, 700)
        script.add(at_ms, "kill broker", newcomer, "", back_ms - at_ms, 1.0)
        for other in others:
            script.add(back_ms - 30, "cut from controllers", other, "", 2_830, 0.0)
            script.add(cut_ms, "cut link", newcomer, other, 3_500, 0.0)
        at_ms = back_ms + 4_600


def _newcomer_behind_a_new_leader(script: Script) -> None:
    """A leader dies while a replica is away, and the one that is left does not know yet how far all is
    committed; it learns it from nobody. The other comes back, and fetches slowly, a little at a time. It is
    what joining from the epoch's start is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        alone_ms = draw.uniform(300, 700)
        script.add(at_ms, "kill broker", LAST_FOLLOWER, "", alone_ms + draw.uniform(20, 200), 1.0)
        script.add(at_ms + alone_ms, "kill broker", LEADER, "", draw.uniform(900, 1_200), 1.0)
        for one, other in combinations(script.brokers, 2):
            script.add(at_ms + alone_ms, "delay frames", one, other, 900, 200.0)
        at_ms += alone_ms + draw.uniform(1_400, 1_800)


def _overtaken_while_it_asks(script: Script) -> None:
    """A leader reaches nobody, writes, dies, and is back at once, ahead of its successor, to whom its link is
    slow: while it asks where that one's log ends, it grows. It is what cutting by epochs alone is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        alone_ms, away_ms = draw.uniform(200, 600), draw.uniform(20, 60)
        script.add(at_ms, "cut link", LEADER, FIRST_FOLLOWER, alone_ms + 20, 0.0)
        script.add(at_ms, "cut link", LEADER, LAST_FOLLOWER, alone_ms + 20, 0.0)
        script.add(at_ms + alone_ms, "kill broker", LEADER, "", away_ms, 1.0)
        for follower in (FIRST_FOLLOWER, LAST_FOLLOWER, LEADER):
            script.add(at_ms + alone_ms + 15, "delay frames", THAT_LEADER, follower, 1_400, 500.0)
        at_ms += alone_ms + draw.uniform(1_800, 2_200)


def _epoch_that_nobody_told(script: Script) -> None:
    """A follower is ahead of the next leader, and hears neither of it nor that the one before leads again,
    until another controller tells it what is so by then: its leader is whom it had. It is what comparing logs
    in every new epoch is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        script.add(at_ms, "cut from controllers", LAST_FOLLOWER, "", 4_000, 0.0)
        script.add(at_ms, "delay frames", LEADER, FIRST_FOLLOWER, 600, 300.0)
        gone_ms = at_ms + draw.uniform(300, 550)
        script.add(gone_ms, "kill broker", LEADER, "", draw.uniform(50, 150), 1.0)
        again_ms = gone_ms + draw.uniform(700, 1_300)
        script.add(again_ms, "kill broker", LEADER, "", draw.uniform(100, 600), 1.0)
        script.add(again_ms + draw.uniform(100, 400), "kill controller", CONTROLLER, "", 100, 1.0)
        at_ms += 6_000


def _epochs_without_a_record(script: Script) -> None:
    """Epoch follows on epoch, because a follower dies again and again, and most of them are over before
    anything was written in them. It is what forgetting epochs that begin at the end is for. (Somebody must
    demand preferred elections: then a leader that lives follows with an epoch that nobody else has.)"""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        script.add(at_ms, "kill broker", LEADER, "", 40, 1.0)
        for nth in range(6):
            soon_ms = at_ms + 300 + 100 * nth + draw.uniform(0, 60)
            script.add(soon_ms, "kill broker", LAST_FOLLOWER, "", 20, 1.0)
        at_ms += 1_000


PLOTS_OF_REPLICATION: Final[dict[int, Plot]] = {
    21: _leadership_to_and_fro,
    22: _followers_that_cannot_fetch,
    23: _answer_of_the_leader_before,
    24: _promise_to_a_new_leader,
    25: _newcomer_that_stops_fetching,
    26: _newcomer_behind_a_new_leader,
    27: _overtaken_while_it_asks,
    28: _epoch_that_nobody_told,
    29: _epochs_without_a_record,
}
