"""The life of a cluster, in the foreground of a terminal or of a driver."""
