"""Where replicas of existing partitions should be: all of them made even, or only what must move."""
