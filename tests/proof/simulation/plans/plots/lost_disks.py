"""Plots in which every replica that counts loses its disk: more than replication promises to survive.

What another replica has must be kept all the same. Seeds draw them with dice of their own (``swarm``), and
mutants are hunted with them.
"""

from typing import Final

from simulation.plans.plots.plot import Plot, Script

LONGEST_MS: Final = 4_000
"""How long brokers go down one after the other, and come back, at most."""


def _isr_loses_its_disks(script: Script) -> None:
    """Brokers are killed one after the other, so that the last of them is alone in the ISR. Its disk is
    emptied, sometimes that of the one before as well, and all return in any order. It is what comparing the
    logs of all replicas, and waiting for each of them, is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        span_ms = min(script.end_ms - at_ms, LONGEST_MS)
        order = draw.sample(script.brokers, len(script.brokers))
        emptied = order[-draw.choice((1, 1, 2)) :]
        kills_ms = [at_ms]
        for _ in order[1:]:
            kills_ms.append(kills_ms[-1] + draw.uniform(0.05, 0.15) * span_ms)
        for broker, down_ms in zip(order, kills_ms, strict=True):
            away_ms = kills_ms[-1] + draw.uniform(50, 0.5 * span_ms + 100) - down_ms
            if broker in emptied:
                script.add(down_ms, "empty a disk", broker, "", away_ms, float(draw.random() < 0.5))
            else:
                script.add(down_ms, "kill broker", broker, "", away_ms, 1.0)
        at_ms = kills_ms[-1] + draw.uniform(3_000, 4_500)


def _all_disks_go(script: Script) -> None:
    """All brokers go down at once, all disks are emptied, and all return in any order."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        span_ms = min(script.end_ms - at_ms, LONGEST_MS)
        last_ms = at_ms + draw.choice((0.0, 0.1 * span_ms))
        for broker in script.brokers:
            down_ms = draw.uniform(at_ms, last_ms)
            away_ms = last_ms + draw.uniform(50, 0.5 * span_ms + 100) - down_ms
            script.add(down_ms, "empty a disk", broker, "", away_ms, float(draw.random() < 0.5))
        at_ms = last_ms + draw.uniform(3_000, 4_500)


def _empty_log_that_led(script: Script) -> None:
    """Two brokers are away, and the third returns with an empty disk and leads. Before it has a record, it
    dies and the power of all is cut. All are back before a controller looks. It is what comparing the epochs
    of records, and no notes of leaders, is for. (Unclean elections must be allowed, one replica must not be
    enough to write, and what was acknowledged must be on disks.)"""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        *others, emptied = draw.sample(script.brokers, len(script.brokers))
        dies_ms = at_ms + draw.uniform(500, 900)
        for nth, other in enumerate(others):
            script.add(at_ms + 60 * nth, "kill broker", other, "", dies_ms + 60 - at_ms, 1.0)
        script.add(at_ms + 200, "empty a disk", emptied, "", 40, 0.0)
        script.add(dies_ms, "kill broker", emptied, "", 60, 1.0)
        for controller in script.controllers:
            script.add(dies_ms + 30, "pause controller", controller, "", draw.uniform(350, 450), 0.0)
        script.add(dies_ms + 40, "cut all power", emptied, "", draw.uniform(80, 110), 0.0)
        at_ms = dies_ms + draw.uniform(2_500, 3_500)


PLOTS_OF_LOST_DISKS: Final[dict[int, Plot]] = {
    101: _isr_loses_its_disks,
    102: _all_disks_go,
    103: _empty_log_that_led,
}
ISR_LOSES_ITS_DISKS: Final = 101
ALL_DISKS_GO: Final = 102
EMPTY_LOG_THAT_LED: Final = 103
