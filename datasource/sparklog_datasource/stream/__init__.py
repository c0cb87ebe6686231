"""Micro-batch reads: a streaming source's answers to Spark, and its plans."""
