"""What the controller is asked, by subject, and what it answers."""
