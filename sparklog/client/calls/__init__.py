"""Connections to brokers, and how calls are tried again."""
