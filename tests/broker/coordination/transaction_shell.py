"""What markers and verifications need of a broker: loops whose calls a test answers, metadata, a timer."""

import uuid
from types import SimpleNamespace

from sparklog.broker.coordination.broker_batches import BrokerCalls
from sparklog.broker.ports import Ports
from sparklog.model.ids import TopicPartition
from sparklog.model.loops import Await, CallBroker, go_on
from tests.broker.conftest import ManualTimer
from tests.broker.coordination.conftest import AtOnce, NoLock

TOPIC_ID = uuid.UUID(int=1)
ANOTHER_ID = uuid.UUID(int=2)


class AnsweredLoops:
    """Each loop goes on until it calls a broker; the test answers the call."""

    def __init__(self):
        self.loops = {}

    def start(self, name, begin):
        self.loops[name] = [begin(), None]

    def call(self, name):
        """The call that a loop makes, or None if it waits for something to send."""
        loop, question = self.loops[name]
        while not isinstance(question, CallBroker):
            if isinstance(question, Await) and not question.signal.take():
                return None
            question = go_on(loop, None if question is None else True)
            self.loops[name][1] = question
        return question

    def answer(self, name, response=None, error=None):
        loop, question = self.loops[name]
        assert isinstance(question, CallBroker)
        self.loops[name][1] = go_on(loop, response, error)


class Shell:
    def __init__(self, clock):
        self.clock, self.timer, self.loops = clock, ManualTimer(), AnsweredLoops()
        self.ports = Ports(clock=clock, timer=self.timer, executor=AtOnce(), new_guard=NoLock)
        self.topics = {}
        self.metadata = SimpleNamespace(topic=self.topics.get, is_received=True)

        self.address_of = lambda broker_id: SimpleNamespace(id=broker_id)

    def calls(self):
        """To brokers whose addresses are those of ``address_of`` at the time of the call."""
        return BrokerCalls(self.loops, lambda broker_id: self.address_of(broker_id), lane=0, timeout_ms=1_000)

    def leads(self, topic_partition, broker_id, topic_id=TOPIC_ID):
        """From now on metadata name this leader."""
        name, number = topic_partition
        topic = self.topics.setdefault(name, SimpleNamespace(id=topic_id, partitions={}))
        topic.id = topic_id
        topic.partitions[number] = SimpleNamespace(leader=broker_id)


A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
