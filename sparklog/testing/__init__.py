"""Clusters of real brokers in the process of a test: ``InProcessCluster``."""

from sparklog.testing.cluster import InProcessCluster

__all__ = ["InProcessCluster"]
