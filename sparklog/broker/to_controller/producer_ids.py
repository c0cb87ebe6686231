"""Producer ids, handed out from blocks that the controller allocates.

Ids are unique in the cluster for ever: a block is never allocated twice, even if its broker dies before it
has used all ids.

A broker requests its first block at its start, and the next one before it runs out. New producers can
therefore start without a controller or ZooKeeper; every Spark task that writes is a producer.
"""

import logging
from contextlib import AbstractContextManager
from typing import Any, Final

from sparklog.broker.ports import ToController
from sparklog.model.errors import ErrorCode, KafkaError, WireError
from sparklog.model.ids import BrokerEpoch, BrokerId, ProducerId
from sparklog.model.ports import Executor, Guard
from sparklog.wire.messages.control.allocate_producer_ids import AllocateProducerIdsRequest

REQUEST_TIMEOUT_MS: Final = 10_000
LEFT_MIN: Final = 100
"""With fewer ids than these left, the next block is asked for."""

logger: Final = logging.getLogger(__name__)


class ProducerIds:
    """One broker's ids; ``executor`` requests blocks in advance."""

    def __init__(
        self,
        broker_id: BrokerId,
        link: ToController,
        executor: Executor,
        *,
        guard: Guard,
        asking: AbstractContextManager[Any],
    ) -> None:
        """``asking`` is held during a request to the controller: concurrent callers share its answer."""
        self._broker_id = broker_id
        self._link = link
        self._executor = executor
        self._asking = asking
        self._lock = guard  # protects the fields below; held for a few lines
        self._ids = range(0)
        self._next_ids = range(0)
        self._failures_count = 0
        self._is_ahead = False  # a request in advance is in progress

    def take(self, broker_epoch: BrokerEpoch) -> ProducerId:
        """A fresh id. Raises OSError or KafkaError if none is left and the controller allocates none."""
        while (taken := self._take()) is None:
            self._allocate(broker_epoch)
        self.look_ahead(broker_epoch)
        return taken

    def look_ahead(self, broker_epoch: BrokerEpoch) -> None:
        """Request a block in the background if few ids are left."""
        with self._lock:
            if self._is_ahead or len(self._ids) + len(self._next_ids) >= LEFT_MIN:
                return
            self._is_ahead = True
        self._executor.submit(lambda: self._allocate_ahead(broker_epoch))

    def _take(self) -> ProducerId | None:
        with self._lock:
            if not self._ids:
                self._ids, self._next_ids = self._next_ids, range(0)
            if not self._ids:
                return None
            taken, self._ids = ProducerId(self._ids[0]), self._ids[1:]
            return taken

    def _allocate_ahead(self, broker_epoch: BrokerEpoch) -> None:
        try:
            self._allocate(broker_epoch)
        except (OSError, KafkaError, WireError) as error:
            logger.info("no producer ids in advance, they are asked for when they are needed: %s", error)
        finally:
            with self._lock:
                self._is_ahead = False

    def _allocate(self, broker_epoch: BrokerEpoch) -> None:
        """Request a block, unless another caller just got one; its failure is raised for all that wait."""
        failures_count = self._failures_count
        with self._asking:
            with self._lock:
                if len(self._ids) + len(self._next_ids) >= LEFT_MIN:
                    return
                if self._failures_count != failures_count:
                    raise ConnectionError("the controller allocated no producer ids to an earlier request")
            try:
                block = self._ask(broker_epoch)
            except BaseException:
                with self._lock:
                    self._failures_count += 1
                raise
            with self._lock:
                self._next_ids = block

    def _ask(self, broker_epoch: BrokerEpoch) -> range:
        request = AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=broker_epoch)
        response = self._link.call(request, timeout_ms=REQUEST_TIMEOUT_MS)
        if response.error_code is not ErrorCode.none:
            raise KafkaError(response.error_code, "the controller gave no producer ids")
        return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)
