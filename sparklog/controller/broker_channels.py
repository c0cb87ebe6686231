"""Ordered channels from the controller to brokers: one thread and one queue for each.

A message is sent again until its broker answers it or the channel is closed, so that brokers see every change
in order, some of them twice: all of them are fenced by epochs and may be repeated. A broker that is paused or
unreachable delays nobody else. Its queue is bounded by the broker's own session: when ZooKeeper declares it
dead, or it registers again, the channel is closed and what waits in it forgotten.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from sparklog.controller.messages import push_answer, push_request
from sparklog.core.controller.actions import PushAnswer, Send
from sparklog.model.cluster import Broker
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from sparklog.network.connection import Connection

logger: Final = logging.getLogger(__name__)

CONNECT_TIMEOUT_MS: Final = 1_000
BACKOFF_MS: Final = 50
BACKOFF_MAX_MS: Final = 1_000

OnAnswer = Callable[[PushAnswer], None]
"""Told of every answer, on the channel's thread."""


class BrokerChannel:
    """The channel to one incarnation of a broker."""

    def __init__(
        self,
        broker: Broker,
        controller_epoch: ControllerEpoch,
        on_answer: OnAnswer,
        *,
        client_id: str,
        request_timeout_ms: int,
    ) -> None:
        self.broker = broker
        self._controller_epoch = controller_epoch
        self._on_answer = on_answer
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._changed = threading.Condition()
        self._queue: deque[Send] = deque()
        self._connection: Connection | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=f"to-broker-{broker.id}", daemon=True)
        self._thread.start()

    def send(self, send: Send) -> None:
        with self._changed:
            self._queue.append(send)
            self._changed.notify()

    def close(self) -> None:
        """Forget what waits, and wake the thread wherever it is."""
        with self._changed:
            self._is_closed = True
            self._queue.clear()
            connection, self._connection = self._connection, None
            self._changed.notify()
        if connection is not None:
            connection.close()

    def join(self, timeout_ms: int) -> None:
        self._thread.join(timeout_ms / 1_000)

    def _run(self) -> None:
        while (send := self._next()) is not None:
            try:
                self._deliver(send)
            except Exception:
                # A bug in one message or its answer must not keep the others from this broker.
                logger.exception("broker %d: %s is given up", self.broker.id, type(send).__name__)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _next(self) -> Send | None:
        """The oldest message; None once the channel is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_closed)
            return None if self._is_closed else self._queue.popleft()

    def _deliver(self, send: Send) -> None:
        """Send until it is answered or the channel is closed."""
        backoff_ms = BACKOFF_MS
        request = push_request(send, self._controller_epoch)
        while not self._is_closed:
            try:
                response = self._connected().call(request, timeout_ms=self._request_timeout_ms)
            except (OSError, SparklogError) as error:
                self._drop_connection()
                if not self._is_closed:
                    logger.info("broker %d, %s: %s", self.broker.id, type(request).__name__, error)
                    self._wait(backoff_ms)
                    backoff_ms = min(2 * backoff_ms, BACKOFF_MAX_MS)
                continue
            self._tell_answer(send, response)
            return

    def _tell_answer(self, send: Send, response: object) -> None:
        code = getattr(response, "error_code", ErrorCode.none)
        if code != ErrorCode.none:
            # It has restarted, or obeys a newer controller: in both cases ZooKeeper tells us.
            logger.info("broker %d refused %s: %s", self.broker.id, type(send).__name__, code.name)
        answer = push_answer(send, response)
        if answer.errors:
            logger.debug("broker %d, %s: %s", self.broker.id, type(send).__name__, answer.errors)
        self._on_answer(answer)

    def _connected(self) -> Connection:
        connection = self._connection
        if connection is not None:
            return connection
        connection = Connection.open(
            self.broker.host, self.broker.port, client_id=self._client_id, timeout_ms=CONNECT_TIMEOUT_MS
        )
        with self._changed:
            if not self._is_closed:
                self._connection = connection
                return connection
        connection.close()
        raise ConnectionError(f"the channel to broker {self.broker.id} is closed")

    def _drop_connection(self) -> None:
        with self._changed:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _wait(self, delay_ms: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, delay_ms / 1_000)


class BrokerChannels:
    """The channels of one term, for the event loop's thread."""

    def __init__(
        self,
        controller_epoch: ControllerEpoch,
        on_answer: OnAnswer,
        *,
        client_id: str,
        request_timeout_ms: int,
    ) -> None:
        self._controller_epoch = controller_epoch
        self._on_answer = on_answer
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._channels: dict[BrokerId, BrokerChannel] = {}
        self._closed: list[BrokerChannel] = []

    def connect(self, broker: Broker) -> None:
        assert broker.id not in self._channels, broker
        self._channels[broker.id] = BrokerChannel(
            broker,
            self._controller_epoch,
            self._on_answer,
            client_id=self._client_id,
            request_timeout_ms=self._request_timeout_ms,
        )

    def disconnect(self, broker: BrokerId, broker_epoch: BrokerEpoch) -> None:
        channel = self._channels.get(broker)
        if channel is not None and channel.broker.epoch == broker_epoch:
            del self._channels[broker]
            channel.close()

    def send(self, send: Send) -> None:
        channel = self._channels.get(send.broker)
        if channel is not None and channel.broker.epoch == send.broker_epoch:
            channel.send(send)

    def close(self) -> None:
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            channel.close()
        self._closed += channels

    def join(self, timeout_ms: int) -> None:
        """Wait for the threads of channels that were closed by ``close``."""
        for channel in self._closed:
            channel.join(timeout_ms)
