"""Plots about controllers, restarts and what is on disk, followed by seeds that hunt a mutant."""

from typing import Final

from simulation.plans.plots.plot import Plot, Script


def _first_back_is_damaged(script: Script) -> None:
    """Everybody goes down at once, and the first to be back has lost a part of its log, or has it damaged.
    It is what a restart's proof is for: only who is proven intact may lead without waiting for the others."""
    draw, at_ms = script.draw, float(script.begin_ms)
    for broker in script.brokers:  # so that each has been stopped cleanly once
        script.add(at_ms, "stop broker", broker, "", 30, 0.0)
        at_ms += 250
    at_ms += 900
    while at_ms < script.end_ms:
        first, *others = draw.sample(script.brokers, len(script.brokers))
        back_ms = draw.uniform(60, 200)
        script.add(at_ms, draw.choice(("rot a log", "cut the power")), first, "", back_ms, 0.0)
        for other in others:
            script.add(at_ms + 1, "kill broker", other, "", back_ms + draw.uniform(700, 1_500), 1.0)
        at_ms += 3_500


def _old_tail_comes_back(script: Script) -> None:
    """A leader that reaches nobody goes on writing, dies, and comes back late: its successor has committed
    other records by then, and compaction or retention may have taken them. The successor has restarted in
    between. It is what the history of epochs is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        leader, *others = draw.sample(script.brokers, len(script.brokers))
        alone_ms, away_ms = draw.uniform(100, 400), draw.uniform(1_800, 3_200)
        for other in others:
            script.add(at_ms, "cut link", leader, other, alone_ms + 50, 0.0)
        script.add(at_ms + alone_ms, "kill broker", leader, "", away_ms, 1.0)
        for other in others:
            restart_ms = at_ms + alone_ms + away_ms - draw.uniform(100, 600)
            script.add(restart_ms, "kill broker", other, "", draw.uniform(30, 150), 1.0)
        at_ms += alone_ms + away_ms + 900


def _overtaken_answers(script: Script) -> None:
    """Followers leave the ISR and come back while their leader stays. It has just had one counted, and the
    answer is on its way, when that one dies again, and the other is to be counted. It is what numbers of
    proposals, and epochs in their answers, are for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    for controller in script.controllers:
        for broker in script.brokers:
            script.add(at_ms, "delay answers", controller, broker, script.end_ms - at_ms, 900.0)
    while at_ms < script.end_ms:
        _, one, other = draw.sample(script.brokers, 3)
        back_ms = draw.uniform(60, 150)
        again_ms = back_ms + draw.uniform(40, 150)
        script.add(at_ms, "kill broker", one, "", back_ms, 1.0)
        script.add(at_ms + 10, "kill broker", other, "", again_ms + draw.uniform(20, 150), 1.0)
        script.add(at_ms + again_ms, "kill broker", one, "", draw.uniform(300, 600), 1.0)
        at_ms += again_ms + draw.uniform(1_000, 1_500)


def _quick_lives(script: Script) -> None:
    """Brokers stop and start again at once, and what controllers tell them comes again. It is what broker
    epochs in the controller's requests are for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    for controller in script.controllers:
        for broker in script.brokers:
            script.add(at_ms, "repeat requests", controller, broker, script.end_ms - at_ms, 0.5)
    while at_ms < script.end_ms:
        at_ms += draw.uniform(200, 700)
        script.add(at_ms, "stop broker", draw.choice(script.brokers), "", draw.uniform(5, 60), 0.0)


def _controller_that_wakes_up(script: Script) -> None:
    """A controller sleeps for longer than its session, and goes on with what it had to do. It is what every
    write's check of the controller epoch is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        asleep_ms = draw.uniform(2_200, 3_000)
        script.add(at_ms, "pause controller", draw.choice(script.controllers), "", asleep_ms, 0.0)
        at_ms += asleep_ms + draw.uniform(100, 300)


def _leader_and_controller_at_once(script: Script) -> None:
    """A leader loses its log's tail while the controller dies, too. The next controller must elect before it
    tells anybody a role."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        for controller in script.controllers:
            script.add(at_ms - draw.uniform(0, 60), "kill controller", controller, "", 100, 1.0)
        script.add(at_ms, "cut the power", draw.choice(script.brokers), "", draw.uniform(20, 300), 0.0)
        at_ms += 2_600


def _tails_cut_again_and_again(script: Script) -> None:
    """Leader after leader reaches nobody for a while, writes, dies, and has its tail cut when it is back."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        leader, *others = draw.sample(script.brokers, len(script.brokers))
        alone_ms = draw.uniform(100, 500)
        for other in others:
            script.add(at_ms, "cut link", leader, other, alone_ms + 50, 0.0)
        script.add(at_ms + alone_ms, "kill broker", leader, "", draw.uniform(50, 300), 1.0)
        at_ms += alone_ms + draw.uniform(250, 700)


def _lost_answers_of_controllers(script: Script) -> None:
    """ISRs shrink and grow, and every other answer of the controller is lost. It is what makes proposals that
    were granted already succeed again."""
    draw, at_ms = script.draw, float(script.begin_ms)
    for controller in script.controllers:
        for broker in script.brokers:
            script.add(at_ms, "lose answers", controller, broker, script.end_ms - at_ms, 0.5)
    while at_ms < script.end_ms:
        first, second, *_ = draw.sample(script.brokers, 2)
        script.add(at_ms, "kill broker", first, "", draw.uniform(100, 500), 1.0)
        script.add(at_ms + draw.uniform(0, 200), "kill broker", second, "", draw.uniform(300, 900), 1.0)
        at_ms += draw.uniform(1_200, 2_000)


def _slow_leave(script: Script) -> None:
    """Brokers stop, and hear late that they may: until then one that fetches might be counted. It is what not
    counting who shuts down is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    for controller in script.controllers:
        for broker in script.brokers:
            script.add(at_ms, "delay answers", controller, broker, script.end_ms - at_ms, 1_500.0)
    while at_ms < script.end_ms:
        script.add(at_ms, "stop broker", draw.choice(script.brokers), "", draw.uniform(5, 200), 0.0)
        at_ms += draw.uniform(1_500, 2_000)


def _newcomer_that_is_gone(script: Script) -> None:
    """A replica has caught up, and dies for long while the proposal to count it does not get through to the
    controller; then it does. It is what counting nobody who is not registered is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        newcomer, *others = draw.sample(script.brokers, len(script.brokers))
        back_ms = at_ms + draw.choice((300, 800)) + draw.uniform(0, 200)
        gone_ms = back_ms + draw.uniform(350, 450)
        script.add(at_ms, "kill broker", newcomer, "", back_ms - at_ms, 1.0)
        for other in others:
            script.add(back_ms - 30, "cut from controllers", other, "", 2_750, 0.0)
        script.add(gone_ms, "kill broker", newcomer, "", 4_500, 1.0)
        at_ms = gone_ms + 5_500


def _words_told_twice(script: Script) -> None:
    """What controllers tell brokers comes again, and late. It is what epochs in StopReplica, and what is
    remembered of deletions, are for. (Somebody must move partitions to and fro.)"""
    draw = script.draw
    for controller in script.controllers:
        for broker in script.brokers:
            last_ms = script.end_ms - script.begin_ms
            script.add(script.begin_ms, "repeat requests", controller, broker, last_ms, 0.8)
    at_ms = script.begin_ms + draw.uniform(200, 1_500)
    while at_ms < script.end_ms:
        script.add(at_ms, "kill broker", draw.choice(script.brokers), "", draw.uniform(30, 300), 1.0)
        at_ms += draw.uniform(800, 1_600)


PLOTS_OF_CONTROL: Final[dict[int, Plot]] = {
    41: _first_back_is_damaged,
    42: _old_tail_comes_back,
    43: _overtaken_answers,
    44: _quick_lives,
    45: _controller_that_wakes_up,
    46: _leader_and_controller_at_once,
    47: _tails_cut_again_and_again,
    48: _lost_answers_of_controllers,
    49: _slow_leave,
    50: _newcomer_that_is_gone,
    51: _words_told_twice,
}
