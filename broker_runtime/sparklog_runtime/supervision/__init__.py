"""On the driver: launches brokers, sees them die, and keeps a connection to each."""
