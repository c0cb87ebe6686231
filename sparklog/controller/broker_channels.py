"""Ordered channels from the controller to brokers: one sender (``network.request_sender``) for each
incarnation.

A message is sent again until its broker answers it or the channel is closed, so that brokers see every change
in order, some of them twice: all of them are fenced by epochs and may be repeated. A broker that is paused or
unreachable delays no other broker. A channel's queue has no bound of its own: when ZooKeeper declares the
broker dead, or the broker registers again, the channel is closed and its queue forgotten. Each channel has a
connection of its own, so that the end of one never touches a call of its successor.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sparklog.controller.push_messages import push_answer, push_request
from sparklog.core.controller.actions import PushAnswer, Send
from sparklog.model.cluster_facts import Broker, Node
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from sparklog.model.loops import Loops
from sparklog.model.ports import Guard
from sparklog.network.dialing.request_sender import RequestSender

logger: Final = logging.getLogger(__name__)

OnAnswer = Callable[[PushAnswer], None]
"""Called with every answer, on the channel's thread."""


@dataclass(frozen=True, slots=True)
class ChannelPorts:
    """What channels need of the world."""

    loops: Loops
    new_lane: Callable[[], int]
    """A lane of calls (``CallBroker.lane``) that no channel has had."""
    hang_up: Callable[[BrokerId, int], None]
    """Ends the calls to this broker on this lane: the one that is under way, and every later one."""
    has_ended: Callable[[Node, int], bool]
    """Whether the broker at this address has ended its connection of this lane, and takes no other."""
    new_guard: Callable[[], Guard]


class BrokerChannels:
    """The channels of one term (``controller.ports.Channels``), for the event loop's thread.

    They go to the brokers' own ``listener``.
    """

    def __init__(
        self,
        controller_epoch: ControllerEpoch,
        on_answer: OnAnswer,
        ports: ChannelPorts,
        *,
        listener: str,
        request_timeout_ms: int,
    ) -> None:
        self._controller_epoch = controller_epoch
        self._on_answer = on_answer
        self._ports = ports
        self._listener = listener
        self._request_timeout_ms = request_timeout_ms
        self._channels: dict[BrokerId, tuple[BrokerEpoch, RequestSender]] = {}

    def connect(self, broker: Broker) -> None:
        assert broker.id not in self._channels, broker
        node = broker.node(self._listener)
        if node is None:
            logger.error(
                "broker %d has no listener %s, through which the controller reaches brokers, but %s: it gets "
                "no roles; give all brokers and applications the same inter.broker.listener.name",
                broker.id,
                self._listener,
                ", ".join(broker.endpoints),
            )
            return
        lane = self._ports.new_lane()
        sender = RequestSender(
            node,
            lane,
            partial(self._ports.hang_up, broker.id, lane),
            guard=self._ports.new_guard(),
            request_timeout_ms=self._request_timeout_ms,
        )
        self._channels[broker.id] = broker.epoch, sender
        self._ports.loops.start(f"to-broker-{broker.id}", sender.loop)

    def disconnect(self, broker: BrokerId, broker_epoch: BrokerEpoch) -> None:
        sender = self._sender(broker, broker_epoch)
        if sender is not None:
            del self._channels[broker]
            sender.close()

    def send(self, send: Send) -> None:
        sender = self._sender(send.broker, send.broker_epoch)
        if sender is not None:
            request = push_request(send, self._controller_epoch, self._listener)
            sender.send(request, lambda response: self._answered(send, response))

    def has_ended(self, broker: BrokerId, broker_epoch: BrokerEpoch) -> bool:
        sender = self._sender(broker, broker_epoch)
        return sender is not None and self._ports.has_ended(sender.node, sender.lane)

    def close(self) -> None:
        channels, self._channels = list(self._channels.values()), {}
        for _, sender in channels:
            sender.close()

    def _sender(self, broker: BrokerId, broker_epoch: BrokerEpoch) -> RequestSender | None:
        epoch, sender = self._channels.get(broker, (None, None))
        return sender if epoch == broker_epoch else None

    def _answered(self, send: Send, response: Any) -> None:
        code = getattr(response, "error_code", ErrorCode.none)
        if code != ErrorCode.none:
            # The broker has restarted, or obeys a newer controller: ZooKeeper reports both.
            logger.info("broker %d refused %s: %s", send.broker, type(send).__name__, code.name)
        answer = push_answer(send, response)
        if answer.errors:
            logger.debug("broker %d, %s: %s", send.broker, type(send).__name__, answer.errors)
        self._on_answer(answer)
