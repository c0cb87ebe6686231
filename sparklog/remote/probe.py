"""What a store can do, found out by doing it. The protocol's name decides nothing.

The probe writes objects of a few megabytes into the folder ``.probe``, under names of its own, and removes
them. A store that lacks one of the needed abilities must not hold history: each says what would be lost.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from sparklog.remote.store import Failure, RemoteStore, RemoteStoreError

FOLDER: Final = ".probe"
PIECE: Final = bytes(range(256)) * 4096
PIECES: Final = 9
"""Pieces of a MiB each: more than one block of a multipart upload."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One ability: whether the store has it, and what was seen if not."""

    ability: str
    has: bool
    seen: str = ""


class _Cut(Exception):  # noqa: N818 (an upload that ends, and no error of anybody)
    """Ends an upload in the middle."""


@dataclass(frozen=True, slots=True)
class _Probe:
    store: RemoteStore
    prefix: str

    def write(self) -> str:
        """A whole object is written"""
        size = self.store.put(self._name("a"), [PIECE[:1000], PIECE[:500]])
        return "" if size == 1500 else f"1500 bytes were written as {size}"

    def read_after_write(self) -> str:
        """An object is read as soon as it is written"""
        read = self.store.read(self._name("a"), 0, 1500)
        return "" if read == PIECE[:1000] + PIECE[:500] else "other bytes were read than were written"

    def exclusive_create(self) -> str:
        """A taken name is refused, and keeps its object"""
        failure = _failure(lambda: self.store.put(self._name("a"), [b"another"]))
        if failure is None:
            return "a second object was taken under the same name"
        if failure is not Failure.EXISTS:
            return f"a taken name was refused, but with other words: {failure.value}"
        return "" if self.store.read(self._name("a"), 0, 7) == PIECE[:7] else "the first object is gone"

    def ranges(self) -> str:
        """Ranges are exact, and one beyond the end is refused"""
        for start, length in ((0, 1), (700, 600), (1499, 1)):
            expected = (PIECE[:1000] + PIECE[:500])[start : start + length]
            if self.store.read(self._name("a"), start, length) != expected:
                return f"other bytes were read at {start} than were written"
        for start, length in ((1400, 200), (1600, 10)):
            failure = _failure(partial(self.store.read, self._name("a"), start, length))
            if failure is not Failure.SHORT:
                return f"a range beyond the end: {failure.value if failure else 'it was answered'}"
        return ""

    def visibility(self) -> str:
        """An object is seen when it is whole, and not before"""
        name, early = self._name("b"), []

        def pieces() -> Iterator[bytes]:
            for number in range(PIECES):
                yield PIECE
                if number >= PIECES - 2:
                    early.append(self._is_seen(name))

        self.store.put(name, pieces())
        if any(early):
            return "an object was seen while it was written"
        last = self.store.read(name, (PIECES - 1) * len(PIECE), len(PIECE))
        return "" if last == PIECE and self._is_seen(name) else "an object was not seen after it was written"

    def cut_upload(self) -> str:
        """A cut upload leaves nothing under the name"""
        name = self._name("c")

        def pieces() -> Iterable[bytes]:
            yield from [PIECE] * PIECES
            raise _Cut

        try:
            self.store.put(name, pieces())
        except _Cut:
            return "the half of an object is seen" if self._is_seen(name) else ""
        return "an upload that was cut was taken as whole"

    def listing(self) -> str:
        """A listing has what was written, and nothing else"""
        expected = sorted([self._name("a"), self._name("b")])
        listed = self._listed()
        return "" if listed == expected else f"{len(listed)} objects are listed, not {len(expected)}"

    def deletion(self) -> str:
        """A deleted object is gone, and may be deleted again"""
        for name in [*self._listed(), self._name("a")]:
            self.store.delete(name)
        left = self._listed()
        return f"{len(left)} objects are still listed" if left else ""

    def _is_seen(self, name: str) -> bool:
        return _failure(lambda: self.store.read(name, 0, 1)) is None or name in self._listed()

    def _listed(self) -> list[str]:
        return [name for name in self.store.names(FOLDER) if name.startswith(self.prefix)]

    def _name(self, letter: str) -> str:
        return f"{self.prefix}{letter}"


def _failure(call: Callable[[], object]) -> Failure | None:
    try:
        call()
    except RemoteStoreError as error:
        return error.failure
    return None


def probe(store: RemoteStore) -> list[Finding]:
    """Every ability that the remote tier needs, in order.

    RemoteStoreError if nothing can be written at all, or if the store does not answer any more.
    """
    trial = _Probe(store, f"{FOLDER}/{uuid.uuid4().hex}-")
    findings = [_found(trial.write, must=True)]
    findings += [
        _found(step)
        for step in (
            trial.read_after_write,
            trial.exclusive_create,
            trial.ranges,
            trial.visibility,
            trial.cut_upload,
            trial.listing,
            trial.deletion,
        )
    ]
    return findings


def _found(step: Callable[[], str], *, must: bool = False) -> Finding:
    finding = Finding(str(step.__doc__), has=True)
    try:
        seen = step()
    except RemoteStoreError as error:
        if must or error.failure is Failure.AWAY:
            raise
        seen = str(error)
    return replace(finding, has=not seen, seen=seen)
