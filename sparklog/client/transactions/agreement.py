"""Values that tasks agree upon: the first one that is put under a name counts, for all who ask.

The cluster keeps a value for a day after its last use, over moves of the coordinator. A name has at most
1,000 characters, a value at most 512 KiB.
"""

from sparklog.client.cluster import ClusterClient
from sparklog.client.coordinator import Coordinator
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.wire.messages.discovery.find_coordinator import TRANSACTION_KEY
from sparklog.wire.messages.writes.agree import AgreeRequest, AgreeResponse


class Agreement:
    """What was agreed upon under ``name``; for one thread.

    Each call raises KafkaError or ClusterUnavailable if the coordinator has no answer in the client's time,
    or if its room for agreements is full of ones that are in use.
    """

    def __init__(self, cluster: ClusterClient, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self._coordinator = Coordinator(cluster, name, TRANSACTION_KEY)

    def value(self) -> bytes | None:
        """The value; None before the first ``put``."""
        return self._ask(None)

    def put(self, value: bytes) -> bytes:
        """The value, which is ``value`` unless another one was put before."""
        agreed = self._ask(value)
        assert agreed is not None
        return agreed

    def _ask(self, value: bytes | None) -> bytes | None:
        request = AgreeRequest(name=self._name, value=value)
        response: AgreeResponse = self._coordinator.call(request, lambda answer: answer.error_code)
        if response.error_code is not ErrorCode.none:
            raise KafkaError(response.error_code, f"agreement {self._name!r}")
        return None if response.value is None else bytes(response.value)
