"""The log cleaner: compaction of closed segments, and their safe replacement."""
