"""A change of settings of users, clients and addresses as one write: nodes, and a notification for each.

A node is written over the version that was read, because other tools write it as well. A node that does not
exist is created after those above it. Brokers, and Kafka's own tools, follow the notifications.
"""

from collections.abc import Mapping

from sparklog.core.controller.state.entity_changes import notify_of
from sparklog.core.controller.state.image import Change, ClusterImage, QuotasChanged
from sparklog.core.controller.state.quota_nodes import parents_of
from sparklog.core.controller.state.write_size import WRITE_BYTES_MAX, bytes_of
from sparklog.core.controller.state.znodes import encode_configs
from sparklog.model.zookeeper import ANY_VERSION, Create, Operation, SetData


class EntityWrites:
    """One multi-op over nodes of users, clients and addresses."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._existing = set(image.quotas)
        self._writes: list[Operation] = []
        self._notifications: list[Operation] = []
        self.changes: list[Change] = []

    @property
    def operations(self) -> list[Operation]:
        return [*self._writes, *self._notifications]

    @property
    def fits(self) -> bool:
        """Whether ZooKeeper takes all of it as one write."""
        return bytes_of(self.operations) <= WRITE_BYTES_MAX

    def put(self, path: str, configs: Mapping[str, str]) -> None:
        """Give a node these settings, unless it has them already."""
        if configs == self._image.quotas.get(path, {}):
            return
        for parent in parents_of(path):
            if parent not in self._existing:
                self._create(parent, b"", {})
        data = encode_configs(configs)
        if path in self._existing:
            version = self._image.quota_versions.get(path, ANY_VERSION)
            self._writes.append(SetData(path, data, version))
            self.changes.append(QuotasChanged(path, configs))
        else:
            self._create(path, data, configs)
        self._notifications.append(notify_of(path))

    def _create(self, path: str, data: bytes, configs: Mapping[str, str]) -> None:
        self._writes.append(Create(path, data))
        self.changes.append(QuotasChanged(path, configs))
        self._existing.add(path)
