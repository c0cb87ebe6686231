"""Connections that this process opens: to brokers, and to the controller."""
