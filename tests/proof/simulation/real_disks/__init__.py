"""The simulated disk beside a real one: the same operations, and what a power cut leaves."""
