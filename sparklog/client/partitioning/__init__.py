"""The partition of a key: Kafka's hash, of one key and of columns."""
