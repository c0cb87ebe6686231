"""The seeded simulation: the shipped core and glue over a simulated world, every schedule replayable.

``tests/proof/docs/simulation.md`` says what it simulates, what it checks, and how to read what it finds.
"""
