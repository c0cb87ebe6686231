"""Clusters with a remote store that copy and delete at once, and topics that are soon in the store only."""

from collections.abc import Mapping


def copying_at_once(url: str) -> dict[str, str]:
    """Settings of brokers with the store at ``url``."""
    return {
        "remote.log.storage.url": url,
        "remote.log.manager.task.interval.ms": "50",
        "log.retention.check.interval.ms": "100",
    }


def in_the_store_only(segment_bytes: int) -> Mapping[str, str]:
    """Settings of a topic whose sealed segments leave the disk once they are copied, and stay stored."""
    return {
        "remote.storage.enable": "true",
        "segment.bytes": str(segment_bytes),
        "local.retention.bytes": "1",
        "retention.ms": "-1",
    }
