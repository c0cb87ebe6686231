"""``sparklog conf`` and ``sparklog submit``: a cluster of its own, on the executors of Spark."""
