"""How a team's client finds the leader of its partition: by itself, or told by somebody who may see it."""

from typing import Any, Final

from simulation.clients.client import CALL_TIMEOUT_MS, Client
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataRequestTopic

GUIDE: Final = "guide"
"""Who asks for a client that may not see its topic; of no team."""

GUIDED: Final = 0.5
"""Share of the questions that it asks. A client that could only ask itself would never be refused a write."""

GUIDES_LANE: Final = 1


class TeamLookups(Client):
    """Of a client that goes on by its own clock."""

    def find_leader(self) -> None:
        if self._is_asking or self._draw.random() >= GUIDED:
            super().find_leader()
            return
        self._is_asking = True
        self._leader = None
        topic = MetadataRequestTopic(name=self.topic_partition.topic)
        request: Any = MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
        self._place.network.call(
            self.process,
            GUIDE,
            self._draw.choice(self._place.hosts),
            request,
            timeout_ms=CALL_TIMEOUT_MS,
            on_response=self._found,
            on_failure=lambda error: self._not_found(),
            is_bound=True,
            lane=GUIDES_LANE,
        )
