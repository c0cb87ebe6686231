"""Rules of operations on brokers, and of the throttles that operations have."""
