"""What every store must do, whatever is behind it. Each adapter's tests run these."""

import os
from collections.abc import Callable, Iterator

import pytest

from sparklog.model.errors import ConfigError
from sparklog.remote.ownership import claim, owner_of
from sparklog.remote.probe import PIECE, PIECES, probe
from sparklog.remote.store import Failure, RemoteStore, RemoteStoreError


def failure(call: Callable[[], object]) -> Failure:
    with pytest.raises(RemoteStoreError) as refused:
        call()
    return refused.value.failure


class StoreContract:
    """Subclasses have a fixture ``store``: an empty one."""

    def test_the_probe_finds_it_fit_and_leaves_nothing(self, store: RemoteStore) -> None:
        assert [finding for finding in probe(store) if not finding.has] == []
        assert store.names("") == []

    def test_bytes_of_every_value_come_back_in_any_range(self, store: RemoteStore) -> None:
        data = os.urandom(100_000)
        assert store.put("a/b/c.arrow", [data[:1], b"", data[1:70_000], data[70_000:]]) == len(data)
        for start, length in ((0, len(data)), (0, 0), (1, 1), (65_535, 2), (99_999, 1), (100_000, 0)):
            assert store.read("a/b/c.arrow", start, length) == data[start : start + length]

    def test_an_empty_object_is_an_object_and_its_name_is_taken(self, store: RemoteStore) -> None:
        assert store.put("empty", []) == 0
        assert store.names("") == ["empty"]
        assert failure(lambda: store.read("empty", 0, 1)) is Failure.SHORT
        assert failure(lambda: store.put("empty", [])) is Failure.EXISTS

    def test_a_large_object_is_exclusive_too(self, store: RemoteStore) -> None:
        store.put("large", [PIECE] * PIECES)
        assert failure(lambda: store.put("large", [bytes(len(PIECE))] * PIECES)) is Failure.EXISTS
        assert store.read("large", 8 * len(PIECE), len(PIECE)) == PIECE

    def test_the_error_of_whoever_gives_the_bytes_is_passed_on(self, store: RemoteStore) -> None:
        def pieces() -> Iterator[bytes]:
            yield b"x" * 1000
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.put("half", pieces())
        assert store.names("") == []
        assert store.put("half", [b"whole"]) == 5

    def test_what_is_not_there_is_missing(self, store: RemoteStore) -> None:
        assert failure(lambda: store.read("nothing", 0, 1)) is Failure.MISSING
        assert failure(lambda: store.read("no/folder/x", 5, 1)) is Failure.MISSING
        assert store.names("no/folder") == []
        store.delete("nothing")
        store.delete("no/folder/x")

    def test_a_folder_lists_what_is_below_it_and_not_its_neighbours(self, store: RemoteStore) -> None:
        for name in ("topic=a/partition=0/y", "topic=a/partition=0/x", "topic=a/z", "topic=ab/w"):
            store.put(name, [b"1"])
        assert store.names("topic=a") == ["topic=a/partition=0/x", "topic=a/partition=0/y", "topic=a/z"]
        store.delete("topic=a/z")
        assert store.names("topic=a/partition=0") == ["topic=a/partition=0/x", "topic=a/partition=0/y"]
        assert len(store.names("")) == 3

    @pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", "../a", "a/./b", "ä", "a b", "x" * 901])
    def test_names_that_no_store_could_hold_are_refused(self, store: RemoteStore, name: str) -> None:
        with pytest.raises(ValueError, match="cannot be an object's name"):
            store.put(name, [b""])

    def test_it_belongs_to_the_cluster_that_claims_it_first(self, store: RemoteStore) -> None:
        assert owner_of(store) is None
        claim(store, "first")
        claim(store, "first")
        with pytest.raises(ConfigError, match="belongs to cluster 'first', not to 'second'"):
            claim(store, "second")
        assert owner_of(store) == "first"
