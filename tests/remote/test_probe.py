"""The probe: a store that breaks one promise is found, by the line of that promise."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from sparklog.remote.open_store import open_store
from sparklog.remote.probe import FOLDER, probe
from sparklog.remote.store import Failure, RemoteStore, RemoteStoreError


class Broken:
    """A store that does all as ``inner`` does; subclasses break one thing."""

    def __init__(self, inner: RemoteStore) -> None:
        self.inner = inner

    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        return self.inner.put(name, pieces)

    def read(self, name: str, start: int, length: int) -> bytes:
        return self.inner.read(name, start, length)

    def names(self, folder: str) -> list[str]:
        return self.inner.names(folder)

    def delete(self, name: str) -> None:
        self.inner.delete(name)


class WritesOver(Broken):
    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        self.inner.delete(name)
        return self.inner.put(name, pieces)


class RefusesTakenNamesButLosesTheirObjects(Broken):
    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        try:
            return self.inner.put(name, list(pieces))
        except RemoteStoreError:
            self.inner.delete(name)
            self.inner.put(name, [bytes(1500)])
            raise


class ShowsHalves(Broken):
    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        written: list[bytes] = []
        try:
            for piece in pieces:
                written.append(piece)
                if len(written) == 8:
                    self.inner.put(name, written)
                elif len(written) > 8:
                    self.inner.delete(name)
                    self.inner.put(name, written)
        finally:
            if len(written) < 8:
                self.inner.put(name, written)
        return sum(map(len, written))


class KeepsCutUploads(Broken):
    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        written: list[bytes] = []
        try:
            written.extend(pieces)
        finally:
            self.inner.put(name, written)
        return sum(map(len, written))


class ReadsShort(Broken):
    def read(self, name: str, start: int, length: int) -> bytes:
        try:
            return self.inner.read(name, start, length)
        except RemoteStoreError as error:
            if error.failure is Failure.SHORT:
                return b""
            raise


class ListsLate(Broken):
    def names(self, folder: str) -> list[str]:
        return self.inner.names(folder)[:-1]


class KeepsDeleted(Broken):
    def delete(self, name: str) -> None:
        pass


class CountsWrong(Broken):
    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        return self.inner.put(name, pieces) - 1


BROKEN: list[tuple[type[Broken], str]] = [
    (CountsWrong, "A whole object is written"),
    (WritesOver, "A taken name is refused, and keeps its object"),
    (RefusesTakenNamesButLosesTheirObjects, "A taken name is refused, and keeps its object"),
    (ReadsShort, "Ranges are exact, and one beyond the end is refused"),
    (ShowsHalves, "An object is seen when it is whole, and not before"),
    (KeepsCutUploads, "A cut upload leaves nothing under the name"),
    (ListsLate, "A listing has what was written, and nothing else"),
    (KeepsDeleted, "A deleted object is gone, and may be deleted again"),
]


@pytest.mark.parametrize(("kind", "promise"), BROKEN)
def test_a_store_that_breaks_a_promise_is_found(kind: type[Broken], promise: str, tmp_path: Path) -> None:
    findings = probe(kind(open_store(f"file://{tmp_path}/history")))
    broken = {finding.ability: finding.seen for finding in findings if not finding.has}
    assert broken.get(promise), broken


def test_two_probes_of_one_store_do_not_disturb_each_other(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/history")
    store.put(f"{FOLDER}/0123-a", [b"another probe's"])
    assert [finding for finding in probe(store) if not finding.has] == []
    assert store.names("") == [f"{FOLDER}/0123-a"]


class GoesAway(Broken):
    def names(self, folder: str) -> list[str]:
        raise RemoteStoreError(Failure.AWAY, "no answer within 1 s")


class IsFull(Broken):
    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        raise RemoteStoreError(Failure.FULL, "no space left")


@pytest.mark.parametrize(("kind", "failure"), [(GoesAway, Failure.AWAY), (IsFull, Failure.FULL)])
def test_a_store_that_cannot_be_tried_is_told_as_such(
    kind: type[Broken], failure: Failure, tmp_path: Path
) -> None:
    with pytest.raises(RemoteStoreError) as refused:
        probe(kind(open_store(f"file://{tmp_path}/history")))
    assert refused.value.failure is failure
