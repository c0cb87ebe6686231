"""Who looks at the page, where clients must log in: HTTP Basic, handed on to the brokers.

The page keeps no users of its own. A name and a password make a client that logs in at the brokers as that
user, so that the page shows what that user may see; it is kept for ten minutes after the last request, for 64
users at most. What is kept is known by a digest, and passwords stay in the clients that log in again.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.client.errors import LoginDenied
from sparklog.model.errors import SparklogError
from sparklog.model.time import Clock
from sparklog.web.viewer import Viewer

VIEWERS_MAX: Final = 64
UNUSED_MAX_MS: Final = 600_000
REACH_TIMEOUT_MS: Final = 5_000
PART_CHARACTERS_MAX: Final = 1_024

MakeViewer = Callable[[str, str, str], Viewer]
"""A viewer by mechanism, user and password, which has not connected yet."""


class NeedsLogin(SparklogError):  # noqa: N818 (a state, not a mistake)
    """The request names no user, or one whom the brokers refuse."""


@dataclass(slots=True)
class _Kept:
    viewer: Viewer
    used_ms: int


class PageLogins:
    """Safe to use from any thread. ``mechanisms`` are tried one after the other, the first first."""

    def __init__(self, make: MakeViewer, mechanisms: Sequence[str], clock: Clock) -> None:
        self._make = make
        self._mechanisms = mechanisms
        self._clock = clock
        self._lock = threading.Lock()
        self._salt = secrets.token_bytes(32)
        self._kept: dict[bytes, _Kept] = {}

    def viewer(self, authorization: str | None) -> Viewer:
        """The viewer of a header ``Authorization``. NeedsLogin; ClusterUnavailable if no broker answers, and
        SecurityRefused if the page does not trust them, which no password mends.
        """
        user, password = _named(authorization)
        named = f"{user}\0{password}".encode("utf-8", "surrogatepass")
        digest = hmac.digest(self._salt, named, hashlib.sha256)
        kept = self._take(digest)
        if kept is not None:
            return kept
        return self._keep(digest, self._logged_in(user, password))

    def forget(self, viewer: Viewer) -> None:
        """End a viewer whose login does not hold any more."""
        with self._lock:
            gone = [digest for digest, kept in self._kept.items() if kept.viewer is viewer]
            for digest in gone:
                del self._kept[digest]
        viewer.close()

    def last_used(self) -> Viewer | None:
        """The viewer of the user who asked last; None if nobody is logged in."""
        with self._lock:
            return next((kept.viewer for kept in reversed(self._kept.values())), None)

    def close(self) -> None:
        with self._lock:
            viewers = [kept.viewer for kept in self._kept.values()]
            self._kept.clear()
        for viewer in viewers:
            viewer.close()

    def _take(self, digest: bytes) -> Viewer | None:
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            old = [one for one, kept in self._kept.items() if now_ms - kept.used_ms > UNUSED_MAX_MS]
            ended = [self._kept.pop(one).viewer for one in old]
            found = self._kept.pop(digest, None)
            if found is not None:
                found.used_ms = now_ms
                self._kept[digest] = found  # as the last one used
        for viewer in ended:
            viewer.close()
        return None if found is None else found.viewer

    def _logged_in(self, user: str, password: str) -> Viewer:
        refusal = ""
        for mechanism in self._mechanisms:
            viewer = self._make(mechanism, user, password)
            try:
                viewer.cluster.reach(REACH_TIMEOUT_MS)
            except LoginDenied as error:
                viewer.close()
                refusal = str(error)
            except BaseException:
                viewer.close()
                raise
            else:
                return viewer
        raise NeedsLogin(f"the brokers do not let {user[:100]!r} log in: {refusal}")

    def _keep(self, digest: bytes, viewer: Viewer) -> Viewer:
        with self._lock:
            other = self._kept.get(digest)
            if other is None:
                self._kept[digest] = _Kept(viewer, self._clock.monotonic_ms())
            ended = [viewer] if other is not None else []
            while len(self._kept) > VIEWERS_MAX:
                ended.append(self._kept.pop(next(iter(self._kept))).viewer)
        for one in ended:
            one.close()
        if other is not None:
            return other.viewer
        viewer.watch()
        return viewer


def _named(authorization: str | None) -> tuple[str, str]:
    """User and password of a header; NeedsLogin if it has none."""
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.casefold() != "basic":
        raise NeedsLogin("log in as a user of the cluster")
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise NeedsLogin("the header Authorization is no user and password in UTF-8") from None
    if not user or not colon or max(len(user), len(password)) > PART_CHARACTERS_MAX:
        raise NeedsLogin("log in with a name and a password")
    return user, password
