"""Requests that wait (for replication, for bytes, for followers), and what is kept between fetches."""
