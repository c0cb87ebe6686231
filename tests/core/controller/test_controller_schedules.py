"""Seeded schedules of everything that can happen to a controller, with the truth kept beside it.

The truth is one bit per broker and partition: does its log hold all that was committed? It is set when a
leader, truthfully, calls the broker in sync; it is lost with the disk cache, and when commits go on without.
"""

import itertools
import random

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller import commands as cmd
from sparklog.core.controller import znodes
from sparklog.model.ids import BrokerEpoch, BrokerId

BROKERS = (1, 2, 3, 4)
STEPS = 60
SEEDS = range(100)


class Schedule:
    def __init__(self, world, seed):
        self.world = world
        self.dice = random.Random(seed)
        self.boots = itertools.count()
        self.boot_of = dict.fromkeys(BROKERS, "boot")
        self.holds = {}
        self.leaders = {}
        self.trace = []

    # -- what can happen

    def restart_intact(self):
        broker = self.dice.choice(BROKERS)
        self.world.register(broker, boot=self.boot_of[broker])

    def restart_with_lost_cache(self):
        broker = self.dice.choice(BROKERS)
        self.boot_of[broker] = f"boot-{next(self.boots)}"
        self.world.register(broker, boot=self.boot_of[broker])
        for key in self.holds:
            if key[0] == broker:
                self.holds[key] = False

    def die(self):
        broker = self.dice.choice(BROKERS)
        if self.world.zk.get(znodes.broker_path(broker)) is not None:
            self.world.expire(broker)

    def look(self):
        self.do(self.world.see_brokers)

    def report(self):
        broker = self.dice.choice(BROKERS)
        if broker in self.world.machine.image.brokers:
            epoch = self.world.machine.image.epoch_of(broker)
            self.do(lambda: self.world.report_death(broker, epoch))

    def change_isr(self):
        found = [one for one in self.partitions() if self.world.machine.image.state(one).has_leader]
        if not found:
            return
        partition = self.dice.choice(found)
        state = self.world.machine.image.state(partition)
        registered = [one for one in state.replicas if self.world.zk.get(znodes.broker_path(one))]
        if state.leader not in registered or not self.holds.get((state.leader, partition)):
            return
        members = {state.leader, *(one for one in registered if self.dice.random() < 0.6)}
        epochs = {one: self.world.epoch(one) for one in members}
        for one in members:
            self.holds[one, partition] = True
        self.do(
            lambda: self.world.propose(state.leader, *sorted(members), topic=partition.topic, epochs=epochs)
        )

    def shut_down(self):
        broker = self.dice.choice(BROKERS)
        if self.world.zk.get(znodes.broker_path(broker)) is not None:
            request = cmd.ControlledShutdown(BrokerId(broker), BrokerEpoch(self.world.epoch(broker)))
            self.do(lambda: self.world.command(request))

    def create(self):
        live = sorted(self.world.machine.image.brokers)
        if len(live) < 2 or len(self.world.machine.image.topics) > 4:
            return
        replicas = tuple(self.dice.sample(live, self.dice.randint(2, len(live))))
        min_isr = str(self.dice.randint(1, 2))
        name = f"t{self.world.drawn}"
        self.do(lambda: self.world.create(name, (replicas,), min_insync_replicas=min_isr))

    def delete(self):
        names = [
            name for name in self.world.machine.image.topics if not self.world.machine.image.is_deleting(name)
        ]
        if names:
            request = cmd.DeleteTopics((cmd.DoomedTopic(self.dice.choice(names)),), 1_000)
            self.do(lambda: self.world.command(request))
            self.world.answer_pushes([one for one in self.world.done if hasattr(one, "push")])

    def another_controller(self):
        self.do(self.world.activate)

    def lose_an_answer(self):
        self.world.lose_answers.append(self.dice.choice(("before", "after")))

    def race_a_write(self):
        self.world.before_write.append(
            self.dice.choice((self.restart_with_lost_cache, self.restart_intact, self.die))
        )

    # -- the rules

    def partitions(self):
        return [one for one, state in self.world.machine.image.partitions() if state is not None]

    def do(self, step):
        self.world.done.clear()
        step()
        lossy = [one.message for one in self.world.done if isinstance(one, act.Report) and one.is_loss]
        self.check(lossy)

    def check(self, lossy):
        for partition in self.partitions():
            state = self.world.machine.image.state(partition)
            assert self.world.stored(partition.topic, partition.partition) == state
            if any(message.startswith(f"{partition}:") for message in lossy):
                self.holds[state.leader, partition] = True
            known = {*state.isr, *state.eligible}
            is_new = partition not in self.leaders
            for broker in state.replicas:
                if is_new and broker in known:
                    self.holds[broker, partition] = True
                elif broker not in known:
                    self.holds[broker, partition] = False
            for broker in known:
                self.check_proof(partition, state, broker)
            if (
                state.has_leader
                and not is_new
                and self.leaders[partition] != (state.leader, state.leader_epoch)
            ):
                assert self.is_past_or_holds(state, partition), (partition, state)
            self.leaders[partition] = (state.leader, state.leader_epoch)

    def check_proof(self, partition, state, broker):
        """A broker that would be trusted deserves it."""
        if self.is_proven(state, broker):
            assert self.holds[broker, partition], (partition, broker, state)

    def is_proven(self, state, broker):
        node = self.world.zk.get(znodes.incarnation_path(broker))
        stored = znodes.decode_incarnation(broker, node.data, node.stat.version, node.stat.mzxid)
        return stored.record.proves(state.isr_incarnations[broker])

    def is_past_or_holds(self, state, partition):
        """The leader was intact when it was elected, or has lost its log only since (we do not know yet)."""
        if self.holds[state.leader, partition]:
            return True
        path = znodes.incarnation_path(state.leader)
        return self.world.zk.get(path).stat.version > state.isr_incarnations[state.leader]

    def run(self):
        happenings = [
            *[self.look] * 5,
            *[self.change_isr] * 5,
            *[self.restart_intact] * 3,
            *[self.die] * 3,
            self.restart_with_lost_cache,
            self.report,
            self.shut_down,
            *[self.create] * 2,
            self.delete,
            self.another_controller,
            self.lose_an_answer,
            self.race_a_write,
        ]
        for _ in range(STEPS):
            happening = self.dice.choice(happenings)
            self.trace.append(happening.__name__)
            happening()
        self.heal()

    def heal(self):
        """Everybody comes back with what they have: whatever can be led by a proven replica is led."""
        self.world.before_write.clear()
        self.world.lose_answers.clear()
        for broker in BROKERS:
            self.world.register(broker, boot=self.boot_of[broker])
        self.look()
        for partition in self.partitions():
            state = self.world.machine.image.state(partition)
            proven = [one for one in (*state.isr, *state.eligible) if self.is_proven(state, one)]
            assert state.has_leader or not proven, (partition, state, proven)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_schedule_elects_a_replica_that_may_lack_committed_records_unless_it_says_so(make_world, seed):
    world = make_world()
    for broker in BROKERS:
        world.register(broker)
    world.activate()
    schedule = Schedule(world, seed)
    schedule.run()
