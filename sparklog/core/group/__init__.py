"""Consumer groups by Kafka's classic protocol: members, rebalances, committed offsets. Pure."""
