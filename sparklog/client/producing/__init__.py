"""What producers' threads share: batches that wait, their memory, requests to leaders."""
