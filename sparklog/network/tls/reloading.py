"""A context that follows its files: whoever takes it looks for changes, at most once a second.

What was read is remembered with the state that its file had *before*; so a file that changes while it is read
is read again. If the new content does not work (half of it is written, key and certificate are of two pairs),
the former context goes on, one warning names the problem, and it is tried again after some seconds or at the
next change. Connections that are open keep the context with which they began.
"""

import logging
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final

from sparklog.credentials.secret_files import ReadFile, SecretFile, read_file
from sparklog.model.errors import ConfigError
from sparklog.model.time import Clock, WallMs

logger: Final = logging.getLogger(__name__)

CHECK_INTERVAL_MS: Final = 1_000
RETRY_INTERVAL_MS: Final = 5_000

FileState = tuple[int, ...] | None

_exposures: Final[set[str]] = set()
"""Those of which this process has warned: its contexts share files."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A context that works. ``expires_at_ms``: the last moment of its own certificate, if it has one;
    ``exposure``: that others may open the file of its key.
    """

    context: ssl.SSLContext
    expires_at_ms: WallMs | None
    exposure: str | None = None


class FollowedContext:
    """For any thread. The first load raises ConfigError; later ones warn."""

    def __init__(self, load: Callable[[ReadFile], Loaded], clock: Clock) -> None:
        self._load = load
        self._clock = clock
        self._lock = Lock()
        self._warned_of = ""
        self._files: Mapping[str, FileState] = {}
        now_ms = clock.monotonic_ms()
        self._look_at_ms = now_ms + CHECK_INTERVAL_MS
        self._retry_at_ms: int | None = None
        self._loaded = self._read()

    def loaded(self) -> Loaded:
        """The newest that works. A thread that finds another one at work takes what there is."""
        if self._clock.monotonic_ms() >= self._look_at_ms and self._lock.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._lock.release()
        return self._loaded

    def _look(self) -> None:
        now_ms = self._clock.monotonic_ms()
        self._look_at_ms = now_ms + CHECK_INTERVAL_MS
        is_changed = any(_state_of(path) != state for path, state in self._files.items())
        is_due = self._retry_at_ms is not None and now_ms >= self._retry_at_ms
        if not (is_changed or is_due):
            return
        try:
            self._loaded = self._read()
        except ConfigError as error:
            self._retry_at_ms = now_ms + RETRY_INTERVAL_MS
            self._warn(str(error))
            return
        self._retry_at_ms = None
        self._warned_of = ""
        logger.info("certificates and keys are read again from %s", ", ".join(sorted(self._files)))

    def _read(self) -> Loaded:
        files: dict[str, FileState] = {}

        def read(path: str) -> SecretFile:
            files.setdefault(path, _state_of(path))
            return read_file(path)

        try:
            loaded = self._load(read)
        except (
            OSError,
            ValueError,
        ) as error:  # OpenSSL's, no more files can be open, a name that no file has
            raise ConfigError(f"TLS cannot be set up now: {error}") from None
        finally:
            self._files = files
        _warn_of_exposure(loaded.exposure)
        return loaded

    def _warn(self, problem: str) -> None:
        if problem != self._warned_of:
            self._warned_of = problem
            logger.warning("%s; what was read before is used until this is mended", problem)


def _warn_of_exposure(exposure: str | None) -> None:
    if exposure is not None and exposure not in _exposures:
        _exposures.add(exposure)
        logger.warning("%s", exposure)


def _state_of(path: str) -> FileState:
    """What changes with a file's content, be it replaced, written over or another link; None if away."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
