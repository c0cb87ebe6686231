"""Clusters of real brokers in the process of a test, with a ZooKeeper in memory.

``from sparklog.testing import InProcessCluster``; docs/testing.md shows a test with it. Modules are imported
on first use only, because pytest loads this package with its plugin for every project.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparklog.testing.cluster import InProcessCluster
    from sparklog.testing.records import Record
    from sparklog.testing.users import ClusterUser

__all__ = ["ClusterUser", "InProcessCluster", "Record"]


def __getattr__(name: str) -> Any:
    if name == "InProcessCluster":
        from sparklog.testing.cluster import InProcessCluster

        return InProcessCluster
    if name == "Record":
        from sparklog.testing.records import Record

        return Record
    if name == "ClusterUser":
        from sparklog.testing.users import ClusterUser

        return ClusterUser
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
