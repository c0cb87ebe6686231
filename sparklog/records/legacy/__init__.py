"""Kafka's message formats 0 and 1, which clients before 0.11 speak (docs/format/messages.md)."""
