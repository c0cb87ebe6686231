"""The producers of one log, pure: sequences and epochs, open and ended transactions, late requests."""
