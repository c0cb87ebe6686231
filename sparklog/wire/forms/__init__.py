"""Requests that a connection sends again and again, read and answered without the schema."""
