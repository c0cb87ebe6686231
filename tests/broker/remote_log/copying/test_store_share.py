"""What a leader knows of its log's share of the store: to whom it is told, and when it is not known."""

import pytest

from sparklog.broker.remote_log.copying.heads import head_path
from sparklog.core.remote_log.head import TAIL_MAX
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.storage.log_config import LogConfig
from tests.broker.partition_harness import Harness
from tests.broker.remote_log.copying.copies import QUAKES
from tests.broker.remote_log.copying.test_garbage_search import Copier


@pytest.fixture
def copier(harness, zookeeper) -> Copier:
    return Copier(harness, zookeeper)


def produce(harness: Harness) -> None:
    harness.produce(bytearray(build_records_batch([Record(value=b"more")], now_ms=9_000)))


def test_a_share_has_start_end_and_bytes_of_the_store_and_nothing_waits(copier, harness) -> None:
    assert harness.partition.store_share is None, "no round yet"
    copier.round()
    share = harness.partition.store_share
    sealed = harness.log.segments[:-1]
    assert share.figures == (0, TAIL_MAX + 1, sum(one.size_bytes for one in sealed), 0, 0)
    assert share.trouble == ""


def test_segments_wait_while_the_store_is_away(copier, harness) -> None:
    copier.round()
    copier.store.fails_at = copier.store.calls + 1
    for _ in range(3):
        produce(harness)
    copier.round()
    share = harness.partition.store_share
    assert (share.end_offset, share.waiting_segments) == (TAIL_MAX + 1, 3)
    assert share.waiting_bytes == sum(one.size_bytes for one in harness.log.segments[-4:-1])


def test_nothing_waits_where_copies_are_switched_off(copier, harness) -> None:
    config = LogConfig(segment_bytes=100, remote_storage=True, remote_copy_disabled=True)
    harness.partition.log_guard.configure(config)
    copier.round()
    assert harness.partition.store_share.figures == (-1, -1, 0, 0, 0)


def test_a_share_is_not_told_by_who_follows_or_leads_anew(copier, harness) -> None:
    copier.round()
    harness.told(2, 5, isr=(2,), replicas=(1, 2))
    assert harness.partition.store_share is None
    harness.told(1, 6, isr=(1,), replicas=(1,))
    assert harness.partition.store_share is None, "of an earlier epoch, in which others copied"


def test_a_manifest_that_cannot_be_read_is_the_trouble_and_its_figures_are_unknown(
    copier, harness, zookeeper
) -> None:
    copier.round()
    zookeeper.set(head_path(QUAKES), b"{}")
    copier.round()
    share = harness.partition.store_share
    assert share.figures == (-1,) * 5
    assert "is no manifest" in share.trouble
