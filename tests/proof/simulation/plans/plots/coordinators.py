"""Plots around coordinators. Only hunts play them: seeds without groups would have nothing of them."""

from typing import Final

from simulation.plans.faults import (
    COORDINATOR,
    EVERY_CLIENT,
    LEADER,
    THAT_COORDINATOR,
    TRANSACTION_COORDINATOR,
)
from simulation.plans.plots.plot import Plot, Script


def _coordinators_stand_still(script: Script) -> None:
    """A coordinator stands still for longer than its session, and goes on a moment before ZooKeeper tells it
    so; then the next one does. It is what confirming leader epochs is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        still_ms = draw.uniform(2_000, 3_500)
        script.add(at_ms, "pause broker", COORDINATOR, "", still_ms, 0.0)
        script.add(at_ms + 1, "cut zookeeper", THAT_COORDINATOR, "", still_ms + draw.uniform(50, 300), 0.0)
        at_ms += still_ms + draw.uniform(500, 1_000)


def _leadership_comes_back_during_a_load(script: Script) -> None:
    """A coordinator of groups dies, comes back, leads again by a preferred election, and dies again, while
    whoever led in between may not have loaded yet, but lives. It is what dropping overtaken loads is for.
    (Somebody must demand preferred elections.)"""
    _come_back_during_a_load(script, COORDINATOR)


def _leadership_of_transactions_comes_back_during_a_load(script: Script) -> None:
    """The same, of a coordinator of transactions."""
    _come_back_during_a_load(script, TRANSACTION_COORDINATOR)


def _come_back_during_a_load(script: Script, coordinator: str) -> None:
    draw, at_ms = script.draw, script.begin_ms + script.draw.uniform(0, 300)
    while at_ms < script.end_ms:
        script.add(at_ms, "kill broker", coordinator, "", draw.uniform(30, 80), 1.0)
        again_ms = at_ms + draw.uniform(1_500, 2_200)
        script.add(again_ms, "kill broker", THAT_COORDINATOR, "", draw.uniform(30, 80), 1.0)
        at_ms = again_ms + draw.uniform(1_000, 1_500)


def _requests_of_clients_are_late(script: Script) -> None:
    """What clients send to a broker for a moment takes up to one and a half seconds, again and again, so that
    they give it up, send it over another connection, and go on before it arrives. It is what verification and
    the order of connections are for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        broker = draw.choice(script.brokers)
        script.add(at_ms, "delay frames", EVERY_CLIENT, broker, draw.uniform(20, 120), 1_500.0)
        at_ms += draw.uniform(10, 100)


def _answers_of_the_coordinator_are_late(script: Script) -> None:
    """What the coordinator of transactions answers the leader takes up to one and a half seconds, so that
    what it said of a transaction is overtaken by the transaction's marker. It is what guards are for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        span_ms = draw.uniform(400, 900)
        script.add(at_ms, "delay answers", TRANSACTION_COORDINATOR, LEADER, span_ms, 1_500.0)
        at_ms += span_ms + draw.uniform(50, 300)


def _markers_outlive_their_coordinator(script: Script) -> None:
    """The coordinator of transactions dies while its markers are on their way, and its successor has written
    the same, and more, when they arrive. It is what the epochs of coordinators are for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        span_ms = draw.uniform(50, 200)
        script.add(at_ms, "delay frames", TRANSACTION_COORDINATOR, LEADER, span_ms, 1_500.0)
        script.add(at_ms + span_ms, "kill broker", TRANSACTION_COORDINATOR, "", draw.uniform(500, 1_500), 1.0)
        at_ms += span_ms + draw.uniform(1_000, 2_000)


def _ends_are_late(script: Script) -> None:
    """For moments, requests of clients take up to three seconds to the coordinator of transactions. A
    producer gives an end up, sends it again, and begins the next transaction, before the first request
    arrives. It is what the order of connections is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        span_ms = draw.uniform(50, 200)
        script.add(at_ms, "delay frames", EVERY_CLIENT, TRANSACTION_COORDINATOR, span_ms, 3_000.0)
        at_ms += draw.uniform(500, 1_000)


PLOTS_OF_COORDINATORS: Final[dict[int, Plot]] = {
    81: _coordinators_stand_still,
    82: _leadership_comes_back_during_a_load,
    83: _requests_of_clients_are_late,
    84: _answers_of_the_coordinator_are_late,
    85: _markers_outlive_their_coordinator,
    86: _ends_are_late,
    87: _leadership_of_transactions_comes_back_during_a_load,
}
