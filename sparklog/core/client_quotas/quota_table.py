"""Which quota binds a request: the most specific one that is set for its user and its client id.

In this order (KIP-55), each of them for one kind of quota:

    user and client id | user, any client | user
    any user, client id | any user, any client | any user
    client id | any client

A quota is shared by all requests that its *names* do not tell apart. All clients of a user share a quota of
the user. A quota of any user's any client is one for each pair.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparklog.model.quota_entity import CLIENT_ID, USER, QuotaEntity


class Shared(NamedTuple):
    """Whose requests are counted together: of this user, and of this client id; empty: of all."""

    user: str
    client_id: str


class Limit(NamedTuple):
    """The quota that binds a request, and with which others it shares that."""

    bound: float
    shared: Shared


class _Key(NamedTuple):
    """Parts of an entity. None: any name without a quota of its own; empty: the entity has no such part."""

    user: str | None
    client_id: str | None


@dataclass(slots=True)
class QuotaTable:
    """The quotas of one kind."""

    _bounds: dict[_Key, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._bounds)

    def put(self, entity: QuotaEntity, bound: float | None) -> None:
        """Let ``bound`` be the quota of ``entity``; None: it has none."""
        by_type = entity.by_type
        key = _Key(by_type.get(USER, ""), by_type.get(CLIENT_ID, ""))
        if bound is None:
            self._bounds.pop(key, None)
        else:
            self._bounds[key] = bound

    def find(self, user: str, client_id: str) -> Limit | None:
        """The quota of a request. ``user``: the principal's name without its type."""
        bounds = self._bounds
        if not bounds:
            return None
        for key in _candidates(user, client_id):
            bound = bounds.get(key)
            if bound is not None:
                return Limit(
                    bound, Shared("" if key.user == "" else user, "" if key.client_id == "" else client_id)
                )
        return None

    def items(self) -> Mapping[_Key, float]:
        return self._bounds


def _candidates(user: str, client_id: str) -> Iterator[_Key]:
    """The keys that fit, the most specific first. A request may lack a client id: then it has that of any."""
    users: tuple[str | None, ...] = (user, None) if user else (None,)
    clients: tuple[str | None, ...] = (client_id, None) if client_id else (None,)
    for one in users:
        for client in clients:
            yield _Key(one, client)
        yield _Key(one, "")
    for client in clients:
        yield _Key("", client)
