"""What a client knows of topics and their leaders, and when it asks again."""
