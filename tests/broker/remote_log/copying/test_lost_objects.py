"""Objects that somebody has removed from the store: the leader says which range is gone, and where it was."""

import pytest

from sparklog.broker.remote_log.copying.garbage_search import GARBAGE_INTERVAL_MS
from sparklog.broker.remote_log.copying.lost_objects import LATE_MS
from sparklog.core.remote_log.head import TAIL_MAX
from tests.broker.remote_log.copying.copies import QUAKES, copied
from tests.broker.remote_log.copying.test_garbage_search import Copier


@pytest.fixture
def copier(harness, zookeeper) -> Copier:
    made = Copier(harness, zookeeper)
    made.round()
    made.round(after_ms=GARBAGE_INTERVAL_MS)
    return made


def remove(copier, zookeeper, *, count: int, suffix: str = "rest") -> dict[str, bytes]:
    """An object of each of the first segments."""
    names = [QUAKES.object_name(one, suffix) for one in copied(zookeeper, copier.store)]
    return {name: copier.store.objects.pop(name) for name in names[:count]}


def look(copier) -> None:
    copier.round(after_ms=GARBAGE_INTERVAL_MS)
    copier.round(after_ms=LATE_MS)


def test_a_range_that_is_gone_is_told_once_with_its_place_and_counted(
    copier, zookeeper, harness, caplog
) -> None:
    gone = remove(copier, zookeeper, count=3)
    look(copier)
    share = harness.partition.store_share
    assert share.trouble == (
        f"offsets 0 to 2 are gone from the remote store: {min(gone)} and 2 more objects are missing at file:///h"
    )
    assert copier.statistics.unreadable == 1
    look(copier)
    assert sum("are gone from the remote store" in line for line in caplog.messages) == 1


def test_what_is_put_back_is_gone_no_more(copier, zookeeper, harness) -> None:
    gone = remove(copier, zookeeper, count=1, suffix="state")
    look(copier)
    assert "offsets 0 to 0 are gone" in harness.partition.store_share.trouble
    copier.store.objects.update(gone)
    copier.round()
    assert (harness.partition.store_share.trouble, copier.statistics.unreadable) == ("", 0)


def test_a_page_that_is_gone_takes_all_its_segments_with_it(copier, harness) -> None:
    (page,) = [name for name in copier.store.objects if name.endswith(".page")]
    del copier.store.objects[page]
    look(copier)
    assert f"offsets 0 to {TAIL_MAX - 1} are gone from the remote store: {page} is missing" in (
        harness.partition.store_share.trouble
    )


def test_an_object_that_a_listing_has_late_is_not_gone(copier, zookeeper, harness) -> None:
    late = remove(copier, zookeeper, count=1)
    copier.round(after_ms=GARBAGE_INTERVAL_MS)
    copier.store.objects.update(late)
    copier.round(after_ms=LATE_MS)
    assert harness.partition.store_share.trouble == ""


def test_after_a_read_that_fails_nobody_waits_for_the_next_look(copier, zookeeper, harness) -> None:
    remove(copier, zookeeper, count=1)
    copier.round()
    copier.round(after_ms=LATE_MS)
    assert harness.partition.store_share.trouble == "", "there was no look"
    copier.copier.suspect(harness.partition.topic_partition)
    copier.round()
    copier.round(after_ms=LATE_MS)
    assert "offsets 0 to 0 are gone" in harness.partition.store_share.trouble


def test_what_delete_records_gave_up_is_gone_no_more(copier, zookeeper, harness) -> None:
    remove(copier, zookeeper, count=2)
    look(copier)
    harness.partition.trim(lambda log, _: log.raise_log_start(2))
    copier.round()
    copier.round()
    assert harness.partition.store_share.figures[0] == 2
    assert harness.partition.store_share.trouble == ""
