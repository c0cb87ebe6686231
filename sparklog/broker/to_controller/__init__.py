"""What a broker asks of the controller, and the thread that follows who holds the office."""
