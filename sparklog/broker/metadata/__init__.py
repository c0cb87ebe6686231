"""What a broker knows of the cluster and tells its clients."""
