"""Decisions about topics, and about the settings of topics and brokers."""
