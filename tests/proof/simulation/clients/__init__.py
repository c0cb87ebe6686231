"""Simulated clients: producers, consumers, administrators. What they see is judged at the end of a run."""
