"""Requests to the leaders of partitions, tried again over elections until each of them has answered."""

from collections.abc import Callable, Collection, Generator, Mapping
from typing import Any, Final

from simulation.clients.client import RETRY_MS
from simulation.clients.transactions.script import Ask, GaveUpError, Script, ScriptedClient, Wait
from simulation.schedule import US_PER_MS
from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataRequestTopic

PATIENCE_MS: Final = 6_000
"""How long a client asks for the same, until it gives up."""

Answers = Mapping[TopicPartition, tuple[ErrorCode, Any]]
ANSWERED: Final = frozenset({ErrorCode.none})


class LeadersClient(ScriptedClient):
    """Knows leaders until one of them does not answer, or refuses."""

    leaders: dict[TopicPartition, tuple[str, KnownLeader]]
    turn_ms: float = 0
    """How long it pauses between two leaders at most, as if the network did; 0: it asks all at once."""

    def on_answer(self, where: TopicPartition, leader_epoch: int) -> None:
        """The leader of this epoch has answered what ``ask_leaders`` asked."""

    def ask_leaders(
        self,
        wanted: Collection[TopicPartition],
        build: Callable[[Mapping[TopicPartition, KnownLeader]], Any],
        read: Callable[[Any], Answers],
        answered: Collection[ErrorCode] = ANSWERED,
    ) -> Generator[Ask | Wait, Any, dict[TopicPartition, Any]]:
        """What each leader answers; ``answered``: the error codes with which it does.

        Raises:
            GaveUpError: one has not answered for too long.
        """
        found: dict[TopicPartition, Any] = {}
        until_us = self.patience_until_us()
        while len(found) < len(wanted):
            left = [one for one in wanted if one not in found]
            yield from self.find_leaders(left)
            asked = [(host, build(leaders)) for host, leaders in self._by_host(left).items()]
            for requests in self._in_turn(asked):
                for response in (yield Ask(requests)):
                    for where, (error, answer) in (read(response) if response is not None else {}).items():
                        if error in answered:
                            self.on_answer(where, self.leaders[where][1].leader_epoch)
                            found[where] = answer
                if self.turn_ms:
                    yield Wait(self._draw.uniform(0, self.turn_ms))
            if len(found) < len(wanted):
                yield from self.pause(until_us)
        return found

    def _in_turn(self, asked: list[tuple[str, Any]]) -> list[tuple[tuple[str, Any], ...]]:
        """The requests that are sent together."""
        if not self.turn_ms:
            return [tuple(asked)] if asked else []
        self._draw.shuffle(asked)
        return [(one,) for one in asked]

    def _by_host(self, wanted: Collection[TopicPartition]) -> dict[str, dict[TopicPartition, KnownLeader]]:
        groups: dict[str, dict[TopicPartition, KnownLeader]] = {}
        for where in wanted:
            if where in self.leaders:
                host, leader = self.leaders[where]
                groups.setdefault(host, {})[where] = leader
        return groups

    def patience_until_us(self) -> int:
        return self.now_us + PATIENCE_MS * US_PER_MS

    def pause(self, until_us: int) -> Script:
        """Before the same is tried again, of leaders that are asked for anew.

        Raises:
            GaveUpError: it is later than that.
        """
        if self.now_us > until_us:
            raise GaveUpError
        self.leaders.clear()
        yield Wait(RETRY_MS)

    def find_leaders(self, wanted: Collection[TopicPartition]) -> Script:
        """Ask some broker for those that are not known; some may stay unknown."""
        if all(one in self.leaders for one in wanted):
            return
        topics = [MetadataRequestTopic(name=name) for name in sorted({one.topic for one in wanted})]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        response = yield from self.ask(self._draw.choice(self._place.hosts), request)
        if response is None:
            return
        hosts = {broker.node_id: broker.host for broker in response.brokers}
        for topic in response.topics:
            for one in topic.partitions:
                if one.leader_id in hosts:
                    leader = KnownLeader(one.leader_id, one.leader_epoch, topic.topic_id)
                    where = TopicPartition(topic.name or "", one.partition_index)
                    self.leaders[where] = hosts[one.leader_id], leader
