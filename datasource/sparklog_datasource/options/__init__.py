"""Options of reads and writes: their names, their parsing, Kafka's own."""
