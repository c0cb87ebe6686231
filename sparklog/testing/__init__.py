"""Clusters of real brokers in the process of a test, a ZooKeeper in memory, and the simulation.

``from sparklog.testing import InProcessCluster``; docs/testing.md shows a test with it. Nothing is imported
before it is asked for, so that the simulation comes without sockets and brokers.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparklog.testing.cluster import InProcessCluster

__all__ = ["InProcessCluster"]


def __getattr__(name: str) -> Any:
    if name == "InProcessCluster":
        from sparklog.testing.cluster import InProcessCluster

        return InProcessCluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
