"""Logins of connections: those that listeners accept, and those of this process at others."""
