"""What is intact in a log after a crash: scans, repairs, and how far they are."""
