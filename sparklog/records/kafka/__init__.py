"""The *records* payload: Kafka v2 records, checked, read and written."""
