"""Members of a group: they join, take part in rebalances, and leave."""
