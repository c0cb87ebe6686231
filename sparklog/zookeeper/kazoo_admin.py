"""A session of kazoo that reads and changes the grants of many nodes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from kazoo.exceptions import NoAuthError, NoNodeError

from sparklog.model.zookeeper import ConnectionLost, Unread
from sparklog.model.zookeeper_access import Acl
from sparklog.zookeeper.kazoo_acls import from_kazoo
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper

REQUESTS_MAX: Final = 200
"""The most requests under way at a time."""

Answer = TypeVar("Answer")


class KazooAdmin(KazooZooKeeper):
    """``ZooKeeperAdmin``."""

    @property
    def identity(self) -> str:
        return self._identity

    def children_many(self, paths: Sequence[str]) -> list[list[str] | Unread]:
        return self._each(paths, self._client.get_children_async, sorted)

    def acls(self, paths: Sequence[str]) -> list[Acl | Unread]:
        return self._each(paths, self._client.get_acls_async, lambda found: from_kazoo(found[0]))

    def set_acls(self, changes: Mapping[str, Acl]) -> dict[str, Unread | None]:
        def submit(path: str) -> Any:
            return self._client.set_acls_async(path, self._kazoos(changes[path]))

        done = self._each(list(changes), submit, lambda stat: None)
        return dict(zip(changes, done, strict=True))

    def _each(
        self, paths: Sequence[str], submit: Callable[[str], Any], take: Callable[[Any], Answer]
    ) -> list[Answer | Unread]:
        """The answers for many paths; those that a reconnect lost are asked for again."""
        answers: list[Answer | Unread] = []
        for start in range(0, len(paths), REQUESTS_MAX):
            chunk, deadline = paths[start : start + REQUESTS_MAX], self._deadline()
            pending = [self._submit(partial(submit, path), deadline, None) for path in chunk]
            for path, one in zip(chunk, pending, strict=True):
                answers.append(self._answer(one, partial(submit, path), deadline, take))
        return answers

    def _answer(
        self, pending: Any, submit: Callable[[], Any], deadline: float, take: Callable[[Any], Answer]
    ) -> Answer | Unread:
        try:
            try:
                found = self._await(pending, deadline)
            except ConnectionLost:
                found = self._ask(submit, self._deadline(), None)
        except NoNodeError:
            return Unread.MISSING
        except NoAuthError:
            return Unread.CLOSED
        return take(found)
