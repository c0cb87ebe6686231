"""What tests and mutants prove, by number.

``S1`` is a situation that Kafka's own tests demand, ``K1`` a bug that Kafka once had, and ``B1`` a bug of
shipped code that the proof has found. Tests have the marks ``scenario``, ``kafka_bug`` and ``bug``;
mutants have ``brings_back``.
"""
