"""The typed topic of a run: its columns, what rows hold in them, and how they change under load."""
