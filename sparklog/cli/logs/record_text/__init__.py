"""Records as text: the lines that ``produce`` reads, and those that ``consume`` prints."""
