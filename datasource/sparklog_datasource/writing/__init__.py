"""What a write delivers, and where a task's batches go."""
