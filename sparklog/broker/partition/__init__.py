"""One replica: its machine and its log under one lock."""
