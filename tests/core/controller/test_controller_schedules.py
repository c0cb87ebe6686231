"""Seeded schedules of everything that can happen to a controller, with the truth kept beside it.

The truth is one bit per broker and partition: does its log hold all that was committed? It is set when a
leader, truthfully, calls the broker in sync; it is lost with the disk cache, and when commits go on without:
when a state has a leader with enough members, and the broker is none of them. Every single write is judged.
Every broker has two directories, and may lose what is in one of them.
Administrators move partitions, add some, change minima and demand elections meanwhile.
"""

import itertools
import random

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.broker_commands import ControlledShutdown
from sparklog.core.controller.commands.config_commands import (
    ALL_BROKERS,
    ChangeConfigs,
    ConfigChange,
    SettingChange,
)
from sparklog.core.controller.commands.partition_commands import AlterReassignments, ElectLeaders, Move
from sparklog.core.controller.commands.topic_commands import (
    CreatePartitions,
    DeleteTopics,
    DoomedTopic,
    Increase,
)
from sparklog.core.controller.events.cluster_event import ClusterEvent
from sparklog.core.controller.state import znodes
from sparklog.core.controller.state.incarnation import DirectoryIdentity
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.kafka_numbers import BROKER_RESOURCE, TOPIC_RESOURCE
from sparklog.model.zookeeper import Create, SetData

BROKERS = (1, 2, 3, 4)
STEPS = 60
SEEDS = range(40)


def directory_of(partition):
    return (int(partition.topic[1:]) + partition.partition) % 2


class Schedule:
    def __init__(self, world, seed):
        self.world = world
        self.dice = random.Random(seed)
        self.boots = itertools.count()
        self.boot_of = dict.fromkeys(BROKERS, "boot")
        self.holds = {}
        self.lost_in = {}
        self.trace = []
        self.rebooted = set()
        self.sent = []
        self.known = {}
        self.demands_unclean = False
        self.disks_of = dict.fromkeys(BROKERS, 0)
        self.emptied = set()
        self.multi, world.zk.multi = world.zk.multi, self.judged_multi

    # -- what can happen

    def restart_intact(self):
        self.come_back(self.dice.choice(BROKERS))

    def restart_with_lost_cache(self):
        broker = self.dice.choice(BROKERS)
        self.lose_cache(broker)
        self.come_back(broker)

    def restart_with_other_disks(self):
        """Its directories are new, and empty: on another machine, or on this one."""
        broker = self.dice.choice(BROKERS)
        self.disks_of[broker] += 1
        if self.dice.random() < 0.5:
            self.lose_cache(broker)
        self.come_back(broker, lost="both")

    def lose_the_disks_of_an_isr(self):
        """Its members come back first, on empty disks; the others come back later, or never."""
        partitions = self.partitions()
        if not partitions:
            return
        state = self.world.machine.image.state(self.dice.choice(partitions))
        for broker in BROKERS:
            if self.world.zk.get(znodes.broker_path(broker)) is not None and self.dice.random() < 0.8:
                self.world.expire(broker)
        self.look()
        for broker in {*state.isr, *state.eligible}:
            self.disks_of[broker] += 1
            self.lose_cache(broker)
            self.come_back(broker, lost="both")
        self.look()

    def restart_with_one_directory_lost(self):
        self.come_back(self.dice.choice(BROKERS), lost=self.dice.choice((0, 1)))

    def power_cut(self):
        """Of everything, at once; most come back, each with what its disk has."""
        for broker in BROKERS:
            self.lose_cache(broker)
            if self.dice.random() < 0.8:
                self.come_back(broker)
            elif self.world.zk.get(znodes.broker_path(broker)) is not None:
                self.world.expire(broker)

    def lose_cache(self, broker):
        self.boot_of[broker] = f"boot-{next(self.boots)}"
        self.rebooted.add(broker)

    def come_back(self, broker, lost=None):
        """What its logs lack matters from here on: nobody reads them before."""
        given = [self.directory(broker, number, lost=lost) for number in (0, 1)]
        self.world.register(broker, boot=self.boot_of[broker], directories=given)
        is_rebooted = broker in self.rebooted
        self.rebooted.discard(broker)
        for one, partition in self.holds:
            if one == broker and (is_rebooted or lost in (directory_of(partition), "both")):
                self.holds[one, partition] = False
            if one == broker and lost == "both":
                self.emptied.add((one, partition))

    def directory(self, broker, number, *, lost):
        uuid = f"{broker}-{number} of disks {self.disks_of[broker]}"
        if lost == "both":
            return DirectoryIdentity(uuid, same_boot=False)
        logs = frozenset(
            (topic.id, partition.partition)
            for topic in self.world.machine.image.topics.values()
            for partition in topic.topic_partitions()
            if directory_of(partition) == number
        )
        return DirectoryIdentity(uuid, corrupt=number == lost, logs=logs)

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
        for one in members:
            self.holds[one, partition] = True
            self.emptied.discard((one, partition))
        self.propose(partition, state, sorted(members))

    def propose(self, partition, state, members):
        epochs = {one: self.world.epoch(one) for one in members}
        topic, number = partition
        self.do(
            lambda: self.world.propose(state.leader, *members, topic=topic, partition=number, epochs=epochs)
        )

    def shut_down(self):
        broker = self.dice.choice(BROKERS)
        if self.world.zk.get(znodes.broker_path(broker)) is not None:
            request = ControlledShutdown(BrokerId(broker), BrokerEpoch(self.world.epoch(broker)))
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
            request = DeleteTopics((DoomedTopic(self.dice.choice(names)),), 1_000)
            self.do(lambda: self.world.command(request))
            self.world.answer_pushes([one for one in self.world.done if hasattr(one, "push")])

    def move(self):
        """Begin to move a partition, elsewhere if it is moving already, or cancel that."""
        live, partitions = sorted(self.world.machine.image.brokers), self.partitions()
        if partitions and live:
            target = tuple(self.dice.sample(live, self.dice.randint(1, len(live))))
            chosen = [Move(one, target) for one in self.dice.sample(partitions, min(2, len(partitions)))]
            if self.dice.random() < 0.25:
                chosen = [Move(one.partition, None) for one in chosen]
            self.do(lambda: self.world.command(AlterReassignments(tuple(chosen))))

    def change_settings(self):
        names = list(self.world.machine.image.topics)
        if self.dice.random() < 0.3:
            kind, name = BROKER_RESOURCE, ALL_BROKERS
        elif names:
            kind, name = TOPIC_RESOURCE, self.dice.choice(names)
        else:
            return
        operation, value = self.dice.choice([("set", "1"), ("set", "2"), ("set", "3"), ("delete", None)])
        change = SettingChange("min.insync.replicas", operation, value)
        request = ChangeConfigs((ConfigChange(kind, name, (change,)),))
        self.do(lambda: self.world.command(request))

    def add_partitions(self):
        for name, topic in self.world.machine.image.topics.items():
            if len(topic.states) < 3:
                request = CreatePartitions((Increase(name, len(topic.states) + 1),), 1_000)
                self.do(lambda: self.world.command(request))  # noqa: B023 (called at once)
                self.world.answer_pushes(self.world.done)
                return

    def elect(self):
        asked = self.dice.choice([None, tuple(self.partitions())])
        unclean = self.dice.random() < 0.15

        def demand():
            self.demands_unclean = unclean
            self.world.command(ElectLeaders(unclean, asked))

        self.do(demand)

    def pass_time(self):
        self.world.now_ms += 400_000
        self.do(lambda: self.world.do(self.world.machine.on_tick(self.world.now_ms)))

    def tell_ends(self):
        """Some brokers answer what they were told, lately or long ago."""
        self.answer(self.dice.sample(self.sent, min(4, len(self.sent))))

    def answer(self, sent):
        for send, ends in sent:
            self.do(lambda: self.world.answer_pushes([send], ends=ends))  # noqa: B023 (called at once)

    def ends(self):
        """Where logs end: those that hold all that was committed are equal, others end somewhere before, and
        those on new disks have no record."""
        return {
            (broker, partition): (0 if self.end_of(broker, partition) else -1, self.end_of(broker, partition))
            for broker in BROKERS
            for partition in self.partitions()
        }

    def end_of(self, broker, partition):
        if self.holds.get((broker, partition)):
            return 1_000
        if (broker, partition) in self.emptied:
            return 0
        return random.Random(f"{broker} {partition} {self.boot_of[broker]}").randrange(1_000)

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
        self.demands_unclean = False
        lost_before = {one: self.world.machine.image.state(one).lost_in_epoch for one in self.partitions()}
        step()
        self.remember_sends()
        reported = sum(one.losses for one in self.world.done if isinstance(one, ClusterEvent))
        lost = []
        for partition in self.partitions():
            state = self.world.stored(partition.topic, partition.partition)
            self.go_on(partition, state)
            for broker in {*state.isr, *state.eligible}:
                self.check_proof(partition, state, broker)
            if state.lost_in_epoch > lost_before.get(partition, -1):
                lost.append(partition)
        assert reported >= len(lost), lost

    def remember_sends(self):
        ends = self.ends()
        self.sent += [(one, ends) for one in self.world.done if isinstance(one, act.SendLeaderAndIsr)]
        del self.sent[:-30]

    def judged_multi(self, operations, **more):
        """A write happens: what it says about partitions must follow from the truth, and then changes it."""
        before = self.world.zk.nodes
        try:
            return self.multi(operations, **more)
        finally:
            if self.world.zk.nodes is not before:
                for operation in operations:
                    if isinstance(operation, Create | SetData) and operation.path.endswith("/state"):
                        self.judge(*self.read_state(operation.path))

    def read_state(self, path):
        *_, topic, _, number, _ = path.split("/")
        node, stored = self.world.zk.get(path), self.world.zk.get(znodes.topic_path(topic))
        assignment = znodes.decode_topic(topic, stored.data).assignments[int(number)]
        state = znodes.decode_state(topic, int(number), node.data).partition(assignment, node.stat.version)
        return TopicPartition(topic, int(number)), state

    def judge(self, partition, state):
        if state.partition_epoch == 0:
            self.holds.update({(broker, partition): broker in state.isr for broker in state.replicas})
            self.catch_up(partition)
        elif state.lost_in_epoch != self.lost_in.get(partition, -1):
            self.judge_loss(partition, state)
            self.lost_in[partition] = state.lost_in_epoch  # from here on the leader's log is the truth
            self.holds.update({(broker, partition): broker == state.leader for broker in BROKERS})
            self.catch_up(partition)
        elif state.has_leader:
            assert self.holds[state.leader, partition], (partition, state)
        self.go_on(partition, state)
        self.known[partition] = {*state.isr, *state.eligible}

    def judge_loss(self, partition, state):
        """Unless it was demanded, only the greatest is elected of the logs of counted and of live replicas;
        of all
        replicas if each counted one came back on new disks."""
        if self.demands_unclean:
            return
        counted, live = self.known[partition], self.world.machine.image.brokers.keys()
        compared = {*counted, *(broker for broker in state.replicas if broker in live)}
        if all((broker, partition) in self.emptied for broker in counted):
            compared = state.replicas
        ends = {broker: self.end_of(broker, partition) for broker in compared}
        assert ends[state.leader] == max(ends.values()), (partition, state, ends)

    def catch_up(self, partition):
        """Replicas on new disks copy the leader's log, or are counted with it."""
        self.emptied -= {(broker, partition) for broker in BROKERS}

    def go_on(self, partition, state):
        """Records are committed if they can be, and a replica that is none any more is deleted."""
        commits = state.has_leader and len(state.isr) >= min(state.min_insync_replicas, len(state.replicas))
        for broker in BROKERS:
            if broker not in state.replicas or (commits and broker not in state.isr):
                self.holds[broker, partition] = False

    def check_proof(self, partition, state, broker):
        """A broker that would be trusted deserves it."""
        if self.is_proven(partition, state, broker):
            assert self.holds[broker, partition], (partition, broker, state)

    def is_proven(self, partition, state, broker):
        node = self.world.zk.get(znodes.incarnation_path(broker))
        stored = znodes.decode_incarnation(broker, node.data, node.stat.version, node.stat.mzxid)
        log = (self.world.machine.image.topics[partition.topic].id, partition.partition)
        return stored.record.proves(state.isr_incarnations[broker], log)

    def run(self):
        happenings = [
            *[self.look] * 5,
            *[self.tell_ends] * 4,
            *[self.change_isr] * 5,
            *[self.restart_intact] * 3,
            *[self.die] * 3,
            self.restart_with_lost_cache,
            self.restart_with_other_disks,
            self.lose_the_disks_of_an_isr,
            *[self.restart_with_one_directory_lost] * 2,
            self.power_cut,
            self.report,
            self.shut_down,
            *[self.create] * 2,
            self.delete,
            *[self.move] * 4,
            *[self.change_settings] * 2,
            self.add_partitions,
            *[self.elect] * 2,
            self.pass_time,
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
            self.come_back(broker)
        self.sent.clear()
        self.look()
        for partition in self.partitions():
            state = self.world.machine.image.state(partition)
            proven = [one for one in (*state.isr, *state.eligible) if self.is_proven(partition, state, one)]
            assert state.has_leader or not proven, (partition, state, proven)
        self.answer(list(self.sent))
        assert all(self.world.machine.image.state(one).has_leader for one in self.partitions())
        self.finish_moves()

    def finish_moves(self):
        """Followers catch up; then every move is through."""
        for partition in self.partitions():
            state = self.world.machine.image.state(partition)
            if state.has_leader and self.holds[state.leader, partition]:
                self.holds.update({(one, partition): True for one in state.replicas})
                self.propose(partition, state, state.replicas)
                state = self.world.machine.image.state(partition)
                assert not (*state.adding, *state.removing), (partition, state)
                assert set(state.isr) == set(state.replicas), (partition, state)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_schedule_elects_a_replica_that_may_lack_committed_records_unless_it_says_so(make_world, seed):
    world = make_world()
    schedule = Schedule(world, seed)
    for broker in BROKERS:
        schedule.come_back(broker)
    world.activate()
    schedule.run()
