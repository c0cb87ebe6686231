"""Inside an executor: the Python worker that becomes a broker, and what it is sent."""
