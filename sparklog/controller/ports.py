"""What a term of office needs of the world beside ZooKeeper, so that a simulation can stand in for it."""

from collections.abc import Callable
from typing import Protocol

from sparklog.core.controller.actions import Send
from sparklog.core.controller.commands.controller_command import Result
from sparklog.model.cluster_facts import Broker
from sparklog.model.ids import BrokerEpoch, BrokerId

AnswerCommand = Callable[[Result], None]
"""Called exactly once with a command's result, on the event loop's thread; must be short."""


class Channels(Protocol):
    """Ordered ways to brokers. What is sent arrives in order, once or more, while the channel is open."""

    def connect(self, broker: Broker) -> None: ...

    def disconnect(self, broker: BrokerId, broker_epoch: BrokerEpoch) -> None:
        """Close the channel to this incarnation; what waits in it is dropped."""

    def send(self, send: Send) -> None:
        """Put a message into its broker's channel; nothing happens if that incarnation has none."""

    def has_ended(self, broker: BrokerId, broker_epoch: BrokerEpoch) -> bool:
        """Whether the process of this incarnation is known to have ended: it ended its connection, or none
        can be made, and its host refuses another. False for a broker that is silent.
        """

    def close(self) -> None:
        """Close all channels."""
