"""Clusters of real brokers in the process of a test, with a ZooKeeper in memory.

``from sparklog.testing import InProcessCluster``; docs/testing.md shows a test with it. Modules are imported
on first use only, because pytest loads this package with its plugin for every project.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparklog.testing.cluster import InProcessCluster
    from sparklog.testing.records import Record

__all__ = ["InProcessCluster", "Record"]


def __getattr__(name: str) -> Any:
    if name == "InProcessCluster":
        from sparklog.testing.cluster import InProcessCluster

        return InProcessCluster
    if name == "Record":
        from sparklog.testing.records import Record

        return Record
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
