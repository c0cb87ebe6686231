"""Confirms leader epochs from ZooKeeper, for shards that may have been replaced during a standstill.

One loop serves all shards of a broker. It asks the server for everything that was written before (``sync``),
and then reads the state of each partition. A shard goes on if the state names this broker in the shard's
epoch, and resigns if not. While ZooKeeper is silent its requests wait, each for a bounded time.
"""

import logging
from collections.abc import Iterator
from typing import Final

from sparklog.broker.coordination.shard_host import ShardHost
from sparklog.core.controller.state.znodes import decode_state, decode_topic, state_path, topic_path
from sparklog.core.coordinator.attention import Attention
from sparklog.model.errors import SparklogError
from sparklog.model.ids import BrokerId
from sparklog.model.loops import Await, Loop, Pause, Signal
from sparklog.model.time import Clock
from sparklog.model.zookeeper import Node, ZooKeeper

logger: Final = logging.getLogger(__name__)

RETRY_MS: Final = 200
"""Pause before an epoch that could not be confirmed is looked at again."""


class Confirmations:
    """The shards of one broker that wait for a confirmation."""

    def __init__(self, broker_id: BrokerId, zookeeper: ZooKeeper, attention: Attention, clock: Clock) -> None:
        self._broker_id = broker_id
        self._zookeeper = zookeeper
        self._attention = attention
        self._clock = clock
        self._asked: dict[ShardHost, None] = {}
        self._signal = Signal()

    def ask(self, host: ShardHost) -> None:
        """Have the epoch of ``host`` confirmed; for any thread."""
        self._asked[host] = None
        self._signal.give()

    def loop(self) -> Loop:
        while True:
            self._signal.take()
            hosts = [host for host in tuple(self._asked) if not self._forget_if_over(host)]
            if not hosts:
                yield Await(self._signal)
                continue
            standstills = self._attention.standstills(self._clock.monotonic_ms())
            try:
                current = list(self._confirmed(hosts))
            except SparklogError as error:
                logger.warning("coordinators cannot confirm their leader epochs in ZooKeeper: %s", error)
                yield Pause(RETRY_MS)
                continue
            for host, is_current in zip(hosts, current, strict=True):
                self._conclude(host, standstills, is_current=is_current)
            if self._asked:
                yield Pause(RETRY_MS)  # also for those that doubt again: the session may still be away

    def _confirmed(self, hosts: list[ShardHost]) -> Iterator[bool]:
        """For each of ``hosts``, whether its leader epoch is current."""
        self._zookeeper.sync()
        topics = sorted({host.topic_partition.topic for host in hosts})
        paths = [topic_path(topic) for topic in topics]
        paths += [state_path(*host.topic_partition) for host in hosts]
        nodes = self._zookeeper.get_many(paths)
        topic_nodes = dict(zip(topics, nodes[: len(topics)], strict=True))
        for host, state in zip(hosts, nodes[len(topics) :], strict=True):
            yield self._is_current(host, topic_nodes[host.topic_partition.topic], state)

    def _is_current(self, host: ShardHost, topic: Node | None, state: Node | None) -> bool:
        if topic is None or state is None:
            return False
        name, number = host.topic_partition
        if decode_topic(name, topic.data).id != host.topic_id:
            return False
        found = decode_state(name, number, state.data)
        return found.leader == self._broker_id and found.leader_epoch == host.leader_epoch

    def _conclude(self, host: ShardHost, standstills: int, *, is_current: bool) -> None:
        del self._asked[host]
        if is_current:
            host.on_confirmed(standstills)
        else:
            logger.info(
                "%s: the coordinator of leader epoch %d resigns, because ZooKeeper has another leader",
                host.topic_partition,
                host.leader_epoch,
            )
            host.resign()

    def _forget_if_over(self, host: ShardHost) -> bool:
        if host.is_over:
            self._asked.pop(host, None)
        return host.is_over
