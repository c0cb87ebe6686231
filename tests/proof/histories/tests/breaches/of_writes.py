"""W1: a version of atomic writes is there once, and is there if a driver was told so."""

from histories.tests.breaches.registry import breaks, legal


@breaks("VersionsAreWrittenOnce")
def a_driver_that_was_killed_had_committed_and_the_replay_commits_again(it):
    it.send("a", 0, transaction="x")
    it.finish("x", outcome="info", write="app/1")
    it.send("b", 1, transaction="y")
    it.finish("y", write="app/1")
    it.final((0, "a"), (1, "b"))


@breaks("VersionsAreWrittenOnce")
def a_driver_is_told_that_a_version_is_committed_and_nothing_of_it_is_there(it):
    it.send("a", 0, transaction="x")
    it.finish("x", outcome="info", write="app/1")
    it.written("app/1")
    it.final(end=1)


@breaks("VersionsAreWrittenOnce")
def a_driver_is_told_of_a_commit_that_nobody_asked_for(it):
    it.written("app/1")
    it.final()


@legal
def a_replay_is_told_that_the_killed_driver_had_committed(it):
    it.send("a", 0, transaction="x")
    it.finish("x", outcome="info", write="app/1")
    it.send("b", 1, transaction="y")
    it.finish("y", outcome="fail", write="app/1")
    it.written("app/1")
    it.final((0, "a"), end=2)


@legal
def two_versions_are_there_and_a_third_that_nobody_was_told_of_is_not(it):
    for offset, value in enumerate("abc"):
        it.send(value, offset, transaction=value)
        it.finish(value, outcome="info" if value == "c" else "ok", write=f"app/{offset}")
    it.written("app/0")
    it.written("app/1")
    it.final((0, "a"), (1, "b"), end=3)
