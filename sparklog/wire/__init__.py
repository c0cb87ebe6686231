"""Kafka's binary protocol: framing, messages, the version table, pure."""
