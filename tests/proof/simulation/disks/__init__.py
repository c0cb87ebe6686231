"""Simulated disks: what a kernel has of a file, and what a power cut leaves of it."""
