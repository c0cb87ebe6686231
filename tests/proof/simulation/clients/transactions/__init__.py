"""Transactional producers, and readers of what they have committed."""
