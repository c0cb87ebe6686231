"""Producer ids: each is given once, and from a block of the broker that gives it.

A broker takes blocks of ids from the controller, which writes into ZooKeeper to which broker the last block
belongs. Blocks are small here, so that brokers use some up. ``clients/producer_identity.py`` asks for ids.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from simulation.invariants.invariant import Violation
from simulation.machines.blocking_work import ControllerCalls, WorkThreadLock, WorkThreads
from simulation.schedule import Tripwire, dice
from sparklog.broker.to_controller import producer_ids as of_brokers
from sparklog.broker.to_controller.producer_ids import ProducerIds
from sparklog.core.controller import producer_id_blocks as of_controllers
from sparklog.core.controller.state.znodes import (
    PRODUCER_ID_BLOCK,
    PRODUCER_ID_BLOCK_SIZE,
    ProducerIdBlock,
    decode_producer_id_block,
)
from sparklog.model.ids import BrokerEpoch, BrokerId, ProducerId
from sparklog.testing.memory_zookeeper import ZooKeeperTree

SIZES: Final = ((1, 1), (2, 1), (3, 2), (5, 2))
"""How many ids a block has, and how few of them a broker has when it asks for the next one. (1,000 and 100
without the simulation.)"""


@contextmanager
def small_blocks(seed: int) -> Iterator[None]:
    """For the length of a run."""
    before = PRODUCER_ID_BLOCK_SIZE, of_brokers.LEFT_MIN
    _set_sizes(*dice(seed, "producer ids").choice(SIZES))
    try:
        yield
    finally:
        _set_sizes(*before)


def _set_sizes(size: int, left_min: int) -> None:
    for module, name, value in (
        (of_controllers, "PRODUCER_ID_BLOCK_SIZE", size),
        (of_brokers, "LEFT_MIN", left_min),
    ):
        setattr(module, name, value)


@dataclass(slots=True)
class ProducerIdsAreUnique:
    """No block has an id that an earlier one had. A broker gives ids of its blocks, each once. Each answer to
    an idempotent producer has an id that no answer had before, in epoch 0, whatever the request names.
    """

    reach: Callable[[str], None] = lambda mark: None
    tell: Callable[[str, str], None] = lambda who, what: None
    is_silent: bool = False
    _blocks: list[ProducerIdBlock] = field(default_factory=list)
    _version: int = -1
    _controller_epoch: int = -1
    _given: dict[ProducerId, str] = field(default_factory=dict)
    _last_block: dict[str, ProducerIdBlock] = field(default_factory=dict)
    """From which each process of a broker gave an id last."""
    _owners: dict[int, str] = field(default_factory=dict)

    def look_at_zookeeper(self, tree: ZooKeeperTree, controller_epoch: int) -> None:
        """After a transaction: was a block taken?"""
        node = tree.get(PRODUCER_ID_BLOCK)
        if node is None or node.stat.version == self._version:
            return
        self._version = node.stat.version
        self.on_block(decode_producer_id_block(node.data), controller_epoch)

    def on_block(self, block: ProducerIdBlock, controller_epoch: int) -> None:
        self.tell("zookeeper", f"producer ids {block.first} to {block.last} are broker {block.broker}'s")
        if self._blocks and block.first <= self._blocks[-1].last:
            self._break(f"{block} was taken after {self._blocks[-1]}")
        if self._blocks and controller_epoch > self._controller_epoch:
            self.reach("a block of producer ids was taken from another controller")
        self._blocks.append(block)
        self._controller_epoch = controller_epoch

    def on_id(self, process: str, broker: BrokerId, producer_id: ProducerId) -> None:
        """A broker is about to give this id to somebody."""
        if producer_id in self._given:
            self._break(f"{process} gives the id {producer_id}, which {self._given[producer_id]} gave before")
        self._given[producer_id] = process
        block = next((one for one in self._blocks if one.first <= producer_id <= one.last), None)
        if block is None or block.broker != broker:
            self._break(f"{process} gives the id {producer_id}, which is of {block}")
            return
        if self._last_block.setdefault(process, block) is not block:
            self.reach("a broker gave producer ids of two blocks")
        self._last_block[process] = block

    def on_answer(self, producer: str, producer_id: int, epoch: int) -> None:
        """A producer without a transactional id got this. ``producer`` is another name after each crash."""
        if producer_id in self._owners:
            owner = self._owners[producer_id]
            self._break(f"{producer} is told the id {producer_id} in epoch {epoch}, which is {owner}'s")
        if epoch != 0:
            self._break(f"{producer} is told the id {producer_id} in epoch {epoch}, which nobody began")
        self._owners[producer_id] = producer

    def _break(self, what: str) -> None:
        if not self.is_silent:
            raise Violation("ProducerIdsAreUnique", what)


class WatchedIds(ProducerIds):
    """The shipped ids of one broker, in its threads; ``rule`` sees each that is given."""

    def __init__(
        self, broker_id: BrokerId, calls: ControllerCalls, threads: WorkThreads, rule: ProducerIdsAreUnique
    ) -> None:
        super().__init__(broker_id, calls, threads, guard=Tripwire(), asking=WorkThreadLock(threads))
        self._process: Final = threads.process
        self._rule: Final = rule

    def take(self, broker_epoch: BrokerEpoch) -> ProducerId:
        taken = super().take(broker_epoch)
        # Told by the world: what is raised here is caught, as whatever a handler raises.
        self._process.schedule.after(
            0, None, partial(self._rule.on_id, self._process.name, self._broker_id, taken)
        )
        return taken
