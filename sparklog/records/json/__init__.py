"""Typed rows as JSON, for readers that know Kafka's records alone."""
