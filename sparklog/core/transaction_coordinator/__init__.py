"""Transactions as a state machine: what each transactional id may do, and which markers end a transaction."""
