"""The reactor and client connections."""
