"""Operations in schedules that seeds draw: crashes, lost answers, new controllers, topics that come and go.

An oracle beside ZooKeeper looks at each write with its own eyes. Bugs that are switched on must be caught.
"""

import random
from collections import Counter
from contextlib import contextmanager

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.topic_commands import DeleteTopics, DoomedTopic
from sparklog.core.controller.machine import ControllerMachine
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations import advance, availability, begin, throttling
from sparklog.core.controller.state import znodes
from sparklog.core.controller.state.applications import KNOWN_BROKERS, decode_known
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.operations import OPERATIONS, Phase, decode_operation
from sparklog.core.controller.state.wishes import Wish
from sparklog.core.controller.steps import AdvanceOperation
from sparklog.model.ids import BrokerId
from sparklog.model.zookeeper import Check, Create, SetData

BROKERS = (1, 2, 3, 4, 5)
STEPS = 45
SEEDS = range(1, 21)


class Oracle:
    """Looks at what ZooKeeper holds, and at each write before it happens."""

    def __init__(self, zk):
        self.zk = zk
        self.restarted = Counter()
        self.multi, zk.multi = zk.multi, self.look

    def look(self, operations, *, generation=None):
        written = [one for one in operations if isinstance(one, Create | SetData)]
        wishes = {
            int(one.path.rpartition("/")[2]): decode_known(BrokerId(0), one.data, 0)
            for one in written
            if one.path.startswith(KNOWN_BROKERS + "/")
        }
        begun = [self.operation(one) for one in written if one.path.startswith(OPERATIONS + "/")]
        if begun:
            epochs = [one for one in operations if isinstance(one, Check)]
            assert [one.path for one in epochs[:1]] == [znodes.CONTROLLER_EPOCH], "the epoch is not checked"
        checks = [(broker, known.wish, self.wish(broker)) for broker, known in wishes.items()]
        found = [self.problem(*one, begun) for one in checks]
        result = self.multi(operations, generation=generation)
        assert not any(found), found
        for one in begun:
            if one.is_running and one.kind is OperationKind.restart and one.phase is Phase.stopping:
                self.restarted[one.id, one.broker] += 1
        assert all(count == 1 for count in self.restarted.values()), self.restarted
        return result

    def problem(self, broker, wish, before, begun):
        """What is wrong with this wish, by the state before it is written."""
        if wish is before or wish is Wish.serving:
            return ""
        named = [one for one, state, _ in self.partitions() if broker in {*state.replicas, *state.eligible}]
        if wish is Wish.drained and named:
            return f"broker {broker} is drained with a replica of {named[0]}"
        if wish is Wish.removed and (named or self.is_alive(broker)):
            return f"broker {broker} is removed while {named} name it"
        if wish is not Wish.stopped:
            return ""
        (operation,) = begun
        return self.short(broker, operation) or self.not_full(broker, operation)

    def short(self, broker, operation):
        if operation.accepts_unavailable or not self.is_alive(broker):
            return ""
        for name, state, minimum in self.partitions():
            left = [one for one in state.isr if one != broker and self.is_alive(one) and self.serves(one)]
            if broker in state.isr and len(left) < min(minimum, len(state.replicas)):
                return f"{name} falls to {left} by the stop of {broker}"
        return ""

    def not_full(self, broker, operation):
        if operation.kind is not OperationKind.restart:
            return ""
        ignored = {broker, *operation.away}
        for name, state, _ in self.partitions():
            missing = set(state.replicas) - {*state.isr, *state.adding} - ignored
            if name not in map(str, operation.lagging) and any(map(self.serves, missing)):
                return f"{name} lacks {missing} at the stop of {broker}"
        return ""

    # -- what is stored

    def operation(self, write):
        return decode_operation(int(write.path.rpartition("/")[2]), write.data, 0)

    def running(self):
        nodes = {name: self.zk.get(f"{OPERATIONS}/{name}") for name in self.zk.children(OPERATIONS)}
        found = [decode_operation(int(name), node.data, 0) for name, node in nodes.items()]
        return [one for one in found if one.is_running]

    def partitions(self):
        deleting = self.zk.children(znodes.DELETE_TOPICS)
        for topic in self.zk.children(znodes.TOPICS):
            if topic in deleting:
                continue
            node = znodes.decode_topic(topic, self.zk.get(znodes.topic_path(topic)).data)
            for number, assignment in enumerate(node.assignments):
                stored = self.zk.get(znodes.state_path(topic, number))
                if stored is not None:
                    state = znodes.decode_state(topic, number, stored.data).partition(assignment, 0)
                    yield f"{topic}-{number}", state, state.min_insync_replicas

    def wish(self, broker):
        node = self.zk.get(f"{KNOWN_BROKERS}/{broker}")
        return Wish.serving if node is None else decode_known(BrokerId(0), node.data, 0).wish

    def serves(self, broker):
        return self.wish(broker) is Wish.serving

    def is_alive(self, broker):
        return self.zk.get(znodes.broker_path(BrokerId(broker))) is not None


class Run:
    """One schedule."""

    def __init__(self, make_world, make_operators, seed):
        self.draw = random.Random(seed)
        self.world = make_world()
        for broker in BROKERS:
            self.world.register(broker)
        self.world.activate()
        self.operators = make_operators(self.world)
        self.operators.host(*BROKERS)
        for name, factor in (("a", 3), ("b", 3), ("c", 2)):
            replicas = tuple(tuple(self.draw.sample(BROKERS, factor)) for _ in range(3))
            self.world.create(name, replicas=replicas, min_insync_replicas="2" if factor == 3 else "1")
        self.oracle = Oracle(self.world.zk)

    def step(self):
        steps = (
            [self.ask] * 5
            + [self.obey] * 4
            + [self.join] * 4
            + [self.start_all] * 2
            + [self.operators.settle] * 2
        )
        steps += [self.crash, self.cancel, self.take_over, self.lose, self.topics]
        self.draw.choice(steps)()
        self.check_rates()

    def ask(self):
        kind = self.draw.choice(["stop", "start", "restart", "drain", "fill", "remove", "restart", "drain"])
        brokers = self.draw.sample(BROKERS, self.draw.choice([1, 1, 2]))
        if kind == "remove":
            brokers = [one for one in BROKERS if not self.oracle.serves(one)] or brokers
        is_all = kind == "restart" and self.draw.random() < 0.5
        throttle = self.draw.choice([0, 1_000, 9_000]) if kind in ("drain", "fill") else 0
        self.operators.ask(kind, *([] if is_all else brokers), is_all=is_all, throttle=throttle)

    def obey(self):
        for broker in BROKERS:
            if self.oracle.is_alive(broker) and not self.oracle.serves(broker):
                self.operators.stop_in_order(broker)

    def start_all(self):
        for broker in BROKERS:
            if not self.oracle.is_alive(broker) and self.oracle.serves(broker):
                self.world.start(broker, clean=True)
                self.operators.host(broker)

    def join(self, share=0.6):
        """Followers catch up, those of moves too; not all of them."""
        image = self.world.machine.image
        for partition, state in list(image.partitions()):
            if state is None or not state.has_leader:
                continue
            late = [one for one in state.replicas if one not in state.isr and image.takes_replicas(one)]
            come = [one for one in late if self.draw.random() < share]
            if come:
                members = (*state.isr, *come)
                self.world.propose(
                    state.leader, *members, topic=partition.topic, partition=partition.partition
                )

    def crash(self):
        alive = [one for one in BROKERS if self.oracle.is_alive(one)]
        if len(alive) > 3:
            self.world.crash(self.draw.choice(alive))

    def cancel(self):
        if (running := self.oracle.running()) and self.draw.random() < 0.4:
            self.operators.cancel(self.draw.choice(running).id)

    def take_over(self):
        self.world.activate()
        self.operators.host(*[one for one in BROKERS if self.oracle.is_alive(one)])

    def lose(self):
        self.world.lose_answers.append(self.draw.choice(["before", "after"]))

    def topics(self):
        if "side" in self.world.machine.image.topics:
            doomed = self.world.submit(DeleteTopics((DoomedTopic(name="side"),), 10_000))
            self.world.answer_pushes(doomed)
        else:
            replicas = tuple(self.draw.sample([one for one in BROKERS if self.oracle.is_alive(one)], 2))
            self.world.create("side", replicas=(replicas,))

    def check_rates(self):
        """Brokers have the lowest rate of the operations that are stored as under way."""
        wanted = min((one.throttle for one in self.oracle.running() if one.throttle), default=None)
        for broker in self.world.machine.image.brokers:
            sent = [
                one
                for one in self.world.done
                if isinstance(one, act.SendUpdateMetadata) and one.broker == broker
            ]
            rates = {sent[-1].dynamic_configs.get(name) for name in throttling.RATES}
            assert rates == {None if wanted is None else str(wanted)}, (broker, rates, wanted)

    def finish(self):
        """Everything returns: each operation ends, or says what it waits for."""
        for _ in range(40):
            self.obey()
            self.start_all()
            self.join(share=1.0)
            self.operators.settle()
        for operation in self.oracle.running():
            assert self.operators.waits(operation.id), f"{operation} waits without a word"


@pytest.fixture
def run(make_world, operators_of):
    def go(seed):
        made = Run(make_world, operators_of, seed)
        for _ in range(STEPS):
            made.step()
        made.finish()
        return made

    return go


def test_operations_keep_their_promises_in_every_schedule(run):
    ended = Counter()
    for seed in SEEDS:
        made = run(seed)
        ended.update(
            (one.kind.value, one.state.value) for one in made.world.machine.image.operations.values()
        )
    for kind in ("stop", "start", "restart", "drain", "fill", "remove"):
        assert ended[kind, "done"], (kind, ended)


@contextmanager
def switched(owner, name, mutated):
    original = getattr(owner, name)
    setattr(owner, name, mutated(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def a_drain_stops_a_broker_with_a_replica_left():
    return switched(advance, "drain", lambda original: lambda image, operation, broker: None), switched(
        advance, "_still_named", lambda original: lambda image, broker: ()
    )


def a_restart_does_not_wait_for_isrs():
    return (switched(advance, "not_full_again", lambda original: lambda image, operation, ignored: ()),)


def a_broker_that_is_to_stop_counts_as_in_sync():
    return (switched(availability, "stays", lambda original: lambda image, one: one in image.brokers),)


def a_wish_is_written_without_the_check_of_the_epoch():
    def mutated(original):
        def write(self, decision, now_ms):
            asked = original(self, decision, now_ms)
            is_operation = isinstance(decision.step, AdvanceOperation)
            return act.WriteZooKeeper(asked.operations[1:]) if is_operation else asked

        return write

    return (switched(ControllerMachine, "_write", mutated),)


def a_new_controller_begins_again():
    def mutated(original):
        def of(snapshot, config):
            image = original(snapshot, config)
            for number, one in image.operations.items():
                if one.is_running:
                    image.operations[number] = begin.replace(one, position=0, phase=Phase.begun)
            return image

        return of

    return (switched(ClusterImage, "of", mutated),)


def a_throttle_goes_with_the_first_operation_that_ends():
    def mutated(original):
        def rate(image):
            is_over = any(one.throttle and not one.is_running for one in image.operations.values())
            return 0 if is_over else original(image)

        return rate

    return (switched(throttling, "rate_of", mutated),)


def a_broker_is_removed_with_a_replica_left():
    def mutated(original):
        return lambda image, broker: original(image, broker) if broker in image.brokers else None

    return (switched(begin, "check_removal", mutated),)


MUTANTS = (
    a_drain_stops_a_broker_with_a_replica_left,
    a_restart_does_not_wait_for_isrs,
    a_broker_that_is_to_stop_counts_as_in_sync,
    a_wish_is_written_without_the_check_of_the_epoch,
    a_new_controller_begins_again,
    a_throttle_goes_with_the_first_operation_that_ends,
    a_broker_is_removed_with_a_replica_left,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_bug_that_is_switched_on_is_caught(run, mutant):
    bugs = mutant()
    for bug in bugs:
        bug.__enter__()
    try:
        for seed in range(1, 200):
            try:
                run(seed)
            except AssertionError:
                return
        pytest.fail("not caught")
    finally:
        for bug in reversed(bugs):
            bug.__exit__(None, None, None)
