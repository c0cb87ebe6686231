"""``sparklog reassign``: plan, execute, verify and cancel moves of partitions to other brokers."""
