"""sparklog: a replicated, partitioned log that lives inside a Spark cluster.

Brokers run inside Spark executors, a controller on the Spark driver decides leaders in ZooKeeper, and
a Spark data source reads and writes the log as Arrow batches. Kafka clients can use the same topics.

This import package holds everything that does not need Spark; ``docs/architecture.md`` is its map.
"""

__version__ = "0.1.0"
