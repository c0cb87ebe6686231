"""Producer ids, handed out from blocks that the controller allocates.

Ids are unique in the cluster for ever: a block that was taken is never given again, also when the broker that
took it dies with most of it unused.
"""

import threading

from sparklog.broker.controller_link import ControllerLink
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerEpoch, BrokerId, ProducerId
from sparklog.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest

REQUEST_TIMEOUT_MS = 10_000


class ProducerIds:
    """One broker's current block."""

    def __init__(self, broker_id: BrokerId, link: ControllerLink) -> None:
        self._broker_id = broker_id
        self._link = link
        self._lock = threading.Lock()
        self._next = 0
        self._end = 0

    def take(self, broker_epoch: BrokerEpoch) -> ProducerId:
        """A fresh id. Raises OSError or KafkaError when the controller cannot give a block now."""
        with self._lock:
            if self._next == self._end:
                self._allocate(broker_epoch)
            taken = ProducerId(self._next)
            self._next += 1
            return taken

    def _allocate(self, broker_epoch: BrokerEpoch) -> None:
        request = AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=broker_epoch)
        response = self._link.call(request, timeout_ms=REQUEST_TIMEOUT_MS)
        if response.error_code is not ErrorCode.none:
            raise KafkaError(response.error_code, "the controller gave no producer ids")
        self._next = response.producer_id_start
        self._end = self._next + response.producer_id_len
