"""Consumer groups and committed offsets. Empty until consumer groups come."""
