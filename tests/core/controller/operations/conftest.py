"""A world whose brokers obey wishes, as the supervisor of an application does."""

from dataclasses import replace

import pytest

from sparklog.core.controller.cluster_view import view_of
from sparklog.core.controller.commands.operation_commands import CancelOperation, OperateBrokers
from sparklog.core.controller.events.cluster_event import ClusterEvent
from sparklog.core.controller.events.event_log import EventLog
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations.settling import SETTLE_MS
from sparklog.core.controller.state.applications import (
    Application,
    HostedBroker,
    decode_known,
    known_broker_path,
)
from sparklog.core.controller.state.operations import decode_operation, operation_path
from sparklog.model.ids import BrokerId, ControllerEpoch

APPLICATION = Application("shop", "driver-1", 9091, release="0.1.0")


class Operators:
    """Asks for operations, and plays the application that hosts the brokers."""

    def __init__(self, world):
        self.world = world
        self.requests = 0
        self.states = {}

    # -- the operator

    def ask(self, kind, *brokers, **more):
        """The answer; ``more``: as in ``OperateBrokers``."""
        self.requests += 1
        more = {"request": f"request-{self.requests}", **more}
        return self.world.command(OperateBrokers(OperationKind(kind), tuple(map(BrokerId, brokers)), **more))

    def begin(self, kind, *brokers, **more):
        """The id of an operation that is not refused."""
        result = self.ask(kind, *brokers, **more)
        assert not result.message, result
        return result.operation

    def refused(self, kind, *brokers, **more):
        result = self.ask(kind, *brokers, **more)
        assert result.message, result
        assert result.operation == -1
        return result.message

    def cancel(self, operation):
        return self.world.command(CancelOperation(operation))

    # -- the application

    def host(self, *brokers, state="serving", reason="", starts=None):
        for broker in brokers:
            known = self.known(broker)
            seen = known.starts if starts is None else starts
            self.states[broker] = HostedBroker(BrokerId(broker), state, reason, starts=seen)
        application = replace(APPLICATION, brokers=tuple(self.states[one] for one in sorted(self.states)))
        return self.world.do(self.world.machine.on_applications((application,), self.world.now_ms))

    def stop_in_order(self, broker):
        """What a broker does whose application has told it to stop, after it has handed over its leaders."""
        self.host(broker, state="stopped")
        return self.world.crash(broker)

    def return_to_isrs(self, broker):
        """The leaders of this broker's partitions see it in sync."""
        image = self.world.machine.image
        for partition, state in list(image.partitions()):
            if broker in state.replicas and broker not in state.isr and state.has_leader:
                members = (*state.isr, broker)
                self.world.propose(
                    state.leader, *members, topic=partition.topic, partition=partition.partition
                )

    def settle(self, after_ms=SETTLE_MS):
        """Time passes; by default that of a restart's pause between two brokers."""
        self.world.now_ms += after_ms
        return self.world.do(self.world.machine.on_tick(self.world.now_ms))

    # -- what is stored

    def known(self, broker):
        node = self.world.zk.get(known_broker_path(BrokerId(broker)))
        return decode_known(BrokerId(broker), node.data, node.stat.version)

    def wish(self, broker):
        return self.known(broker).wish.value

    def stored(self, operation):
        node = self.world.zk.get(operation_path(operation))
        found = decode_operation(operation, node.data, node.stat.version)
        assert found == self.world.machine.image.operations[operation]
        return found

    def state(self, operation):
        return self.stored(operation).state.value

    def done(self, operation):
        """How many are done, as the report of the cluster says it."""
        view = view_of(self.world.machine.image, EventLog(ControllerEpoch(1)))
        return next(one.done for one in view.operations if one.operation.id == operation)

    def waits(self, operation):
        return [wait.words for wait in self.world.machine.work.looks.waits.get(operation, ())]


def words(done):
    return [str(one) for one in done if isinstance(one, ClusterEvent)]


@pytest.fixture
def operators(world):
    """Brokers 1, 2 and 3, hosted by one application, and no topic."""
    operators = Operators(world)
    operators.host(1, 2, 3)
    return operators


@pytest.fixture
def operators_of():
    return Operators
