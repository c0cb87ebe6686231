"""Rules that must hold after every step. Each is a class, whose name is what a broken run reports."""
