"""``sparklog users``: passwords of users for SCRAM."""
