"""TLS: contexts from files that are read again when they change, principals from certificates."""
