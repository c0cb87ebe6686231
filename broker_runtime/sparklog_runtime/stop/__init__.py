"""The end of processes: of Spark's JVM, of brokers, of children."""
