"""Secrets that settings name, read where this process has them: files, and its environment."""
