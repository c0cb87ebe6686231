"""Consumer groups as a client sees them: members that share partitions, and administration of groups."""
