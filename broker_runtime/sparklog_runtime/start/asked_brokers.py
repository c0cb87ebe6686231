"""What a start asks its brokers: whether they know their cluster, and for the internal topics.

It asks at the brokers' own listener, as brokers do: a listener of clients may want a login that no start has.
A cluster has its internal topics from its start on, because they need as many brokers as replicas: the first
exactly-once write must not depend on every broker being there.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Protocol

from sparklog.model.errors import SparklogError, WireError
from sparklog.model.settings.config import BrokerConfig
from sparklog.network.dialing.peer_refused import PeerRefused
from sparklog_runtime.start.reachable import address_of

logger: Final = logging.getLogger(__name__)

ASK_TIMEOUT_MS: Final = 1_000


class Listening(Protocol):
    """A broker process, as the supervisor knows it."""

    @property
    def listeners(self) -> Mapping[str, str]:
        """``host:port`` by listener name; empty before the broker is registered."""
        ...


class AskedBrokers:
    """Questions to the brokers of a start with this configuration."""

    def __init__(self, config: BrokerConfig) -> None:
        # start time: imported while Spark starts
        from sparklog.network.listener_tls import inter_broker_connector

        self._config = config
        self._listener = config.listeners.inter_broker
        self._connector = inter_broker_connector(config)

    def know(self, brokers: Iterable[Listening], broker_ids: Collection[int]) -> bool:
        """Whether each of the brokers lists all of ``broker_ids``."""
        return all(set(broker_ids) <= self._known_to(broker) for broker in brokers)

    def have_internal_topics(self, broker: Listening) -> None:
        """Have the broker create those internal topics for which there are brokers enough. Waits for none.

        Failing that, the first client that needs one has it created.
        """
        # start time: as above
        from sparklog.wire.messages.discovery.find_coordinator import (
            GROUP_KEY,
            TRANSACTION_KEY,
            FindCoordinatorRequest,
        )

        brokers = len(self._known_to(broker))
        factors = {
            TRANSACTION_KEY: "transaction.state.log.replication.factor",
            GROUP_KEY: "offsets.topic.replication.factor",
        }
        for key_type, factor in factors.items():
            needed = self._config.get_int(factor)
            if needed > brokers:
                logger.info("%d brokers are less than %s=%d", brokers, factor, needed)
                continue
            self._answer(broker, FindCoordinatorRequest(key_type=key_type, coordinator_keys=["start"]))

    def _known_to(self, broker: Listening) -> set[int]:
        # start time: as above
        from sparklog.wire.messages.discovery.metadata import MetadataRequest

        answer = self._answer(broker, MetadataRequest(topics=[]))
        return set() if answer is None else {int(known.node_id) for known in answer.brokers}

    def _answer(self, broker: Listening, request: Any) -> Any:
        """None if there is none now."""
        address = broker.listeners.get(self._listener, "")
        if not address:
            return None
        try:
            connection = self._connector.open(
                *address_of(address), client_id="sparklog-start", timeout_ms=ASK_TIMEOUT_MS
            )
            with connection:
                return connection.call(request, timeout_ms=ASK_TIMEOUT_MS)
        except PeerRefused as error:
            raise SparklogError(f"a start cannot ask its brokers: {error}") from error
        except (OSError, WireError) as error:
            logger.info("%s does not answer %s yet: %s", address, type(request).__name__, error)
            return None
