"""What administrators ask: topics, settings, elections, moves, log directories."""
