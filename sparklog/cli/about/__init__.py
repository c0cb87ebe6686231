"""The program about itself: its version, and how shells complete its commands."""
