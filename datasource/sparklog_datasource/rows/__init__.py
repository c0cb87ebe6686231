"""The rows that a read gives: their form, their place, and payloads as text."""
