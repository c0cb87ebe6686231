"""The *arrow* payload: our header, the directory of columns, and Arrow's message."""
