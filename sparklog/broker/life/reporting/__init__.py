"""What a broker reports of itself: an hour of figures, its last warnings, its process and its disks."""
