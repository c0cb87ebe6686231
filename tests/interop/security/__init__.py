"""A secured cluster, other people's clients and tools upon it, and dialogues beside Apache Kafka."""
