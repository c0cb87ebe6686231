"""A broker from its start to its stop: composition, registration, and the work that recurs."""
