"""The batch format: Kafka's v2 envelope around *records* or *arrow* payloads, pure."""
