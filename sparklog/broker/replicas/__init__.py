"""The replicas that this broker holds: their table, their roles, their effects, and their chores."""
