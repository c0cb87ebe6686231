"""Micro-batch reads: what a streaming source answers Spark, and how it plans a micro-batch."""
