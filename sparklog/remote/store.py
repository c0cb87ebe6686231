"""The port of a remote store, and the ways in which it fails.

A store holds whole, immutable objects under names such as ``topic=a/partition=0/x.arrow``, relative to the
store's URL. An object is there completely or not at all, and its name is never given twice. Nothing here
trusts a length or a listing for content: a reader says which bytes it wants, and gets exactly these.

Every call blocks for at most about the store's timeout for each step, and fails with ``RemoteStoreError``.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Protocol

from sparklog.model.errors import SparklogError


class Failure(Enum):
    """Why a store did not do what it was asked."""

    MISSING = "there is no such object, folder or bucket"
    EXISTS = "there is an object of that name"
    SHORT = "the object ends before the range that was asked"
    REFUSED = "the store does not allow it"
    FULL = "the store has no space left"
    AWAY = "the store does not answer"
    OTHER = "the store failed in another way"


class RemoteStoreError(SparklogError):
    """A failed call. ``failure`` says of which kind; the message has the object and the store's own words."""

    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure = failure


class RemoteStore(Protocol):
    """One store, of one URL. Methods may be called from several threads."""

    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        """Write an object of these bytes, durably; how many bytes it has.

        Memory is bounded by the largest piece and the store's block. EXISTS if the name is taken: the object
        of that name then stays as it is. If ``pieces`` raises, the object is not there, and the error is
        passed on. After any other failure the object may be there, whole: choose a new name to try again.
        """
        ...

    def read(self, name: str, start: int, length: int) -> bytes:
        """Exactly ``length`` bytes from byte ``start``; SHORT if the object ends before, MISSING without."""
        ...

    def names(self, folder: str) -> list[str]:
        """Sorted names of all objects in a folder and below it ("" for all); [] if there is no such folder.

        Objects that are still being written are not listed.
        """
        ...

    def delete(self, name: str) -> None:
        """Remove an object. One that is not there is no failure."""
        ...
