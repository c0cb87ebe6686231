"""All quotas of a cluster, as the nodes of users, clients and addresses have them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from sparklog.core.client_quotas.quota_keys import CONNECTION_CREATION_RATE, OF_CLIENTS, quotas_in
from sparklog.core.client_quotas.quota_table import QuotaTable
from sparklog.core.controller.state.quota_nodes import entity_of
from sparklog.model.quota_entity import IP


@dataclass(slots=True)
class QuotaBook:
    """The quotas of now. ``of_clients`` has a table for each kind; the tables stay the same objects."""

    of_clients: Mapping[str, QuotaTable] = field(
        default_factory=lambda: {key: QuotaTable() for key in OF_CLIENTS}
    )
    of_addresses: dict[str | None, float] = field(default_factory=dict)
    """Connections a second of an address; None: of each address without a rate of its own."""
    _at: dict[str, Mapping[str, float]] = field(default_factory=dict)
    """The quotas at each node that has some."""

    def put(self, path: str, configs: Mapping[str, str]) -> None:
        """The node at ``path`` has these settings now; none if it is gone."""
        entity = entity_of(path)
        before, now = self._at.pop(path, {}), quotas_in(configs)
        if entity is None or not (before or now):
            return
        if now:
            self._at[path] = now
        for key in before.keys() | now.keys():
            if key in self.of_clients:
                self.of_clients[key].put(entity, now.get(key))
            elif key == CONNECTION_CREATION_RATE:
                address = _canonical(entity.by_type.get(IP))
                if key in now:
                    self.of_addresses[address] = now[key]
                else:
                    self.of_addresses.pop(address, None)

    def replace(self, nodes: Mapping[str, Mapping[str, str]]) -> None:
        """``nodes`` are all that there are."""
        for path in [path for path in self._at if path not in nodes]:
            self.put(path, {})
        for path, configs in nodes.items():
            self.put(path, configs)


def _canonical(address: str | None) -> str | None:
    """An address of IPv6 may be written in several ways; connections have it in one."""
    try:
        return None if address is None else str(ip_address(address))
    except ValueError:
        return address
