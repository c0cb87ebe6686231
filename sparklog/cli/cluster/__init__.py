"""Commands about a cluster: its state, its settings, its replicas and leaders, its remote store."""
