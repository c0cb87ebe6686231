"""Spark's executors as brokers meet them: their Python, how many Spark has given, why a job failed there."""
