"""Settings with Kafka's names: what there is, how it is read, and what Kafka calls it."""
