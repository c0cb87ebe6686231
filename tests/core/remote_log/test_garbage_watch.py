"""Objects without a name in a manifest go after a grace, and never while one names them."""

from sparklog.core.remote_log.garbage_watch import GarbageWatch


def test_an_object_is_garbage_when_it_was_unnamed_for_longer_than_the_grace() -> None:
    watch = GarbageWatch(grace_ms=100)
    assert watch.on_listed(["named", "orphan"], {"named"}, 1_000) == []
    assert watch.on_listed(["named", "orphan"], {"named"}, 1_100) == []
    assert watch.on_listed(["named", "orphan"], {"named"}, 1_101) == ["orphan"]


def test_an_object_that_is_named_in_between_begins_its_grace_anew() -> None:
    watch = GarbageWatch(grace_ms=100)
    watch.on_listed(["one"], set(), 0)
    watch.on_listed(["one"], {"one"}, 90)
    assert watch.on_listed(["one"], set(), 150) == []
    assert watch.on_listed(["one"], set(), 251) == ["one"]


def test_an_object_that_is_not_listed_any_more_is_forgotten() -> None:
    watch = GarbageWatch(grace_ms=100)
    watch.on_listed(["one"], set(), 0)
    assert watch.on_listed([], set(), 150) == []
    assert watch.on_listed(["one"], set(), 160) == []
