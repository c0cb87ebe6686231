"""The rows of a read: their form, their topic and partition, and payloads as text."""
