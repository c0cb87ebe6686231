"""What of a partition is copied to a remote store, and what is deleted where."""
