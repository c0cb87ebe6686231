"""How a client connects: in the clear or over TLS, by properties with Kafka's names."""
