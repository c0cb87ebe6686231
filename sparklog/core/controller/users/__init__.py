"""Passwords of users for SCRAM: who may have which, where they are written, and who has some."""
