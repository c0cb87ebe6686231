"""The segments of a log: their files, their indexes, and searches in them."""
