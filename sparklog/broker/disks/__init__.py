"""The log directories of a broker: which partition has its log where, and who cleans it."""
