"""What happened in the cluster, for people: events of one term of office, numbered and kept."""
