"""What a broker does for the partitions that it follows: sessions with leaders, and their fetches."""
