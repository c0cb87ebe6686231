"""Clients of the typed topic: the data source's own writers and readers, without Spark's JVM."""
