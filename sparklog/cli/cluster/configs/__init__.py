"""``sparklog configs``: settings of topics and brokers, shown and changed while they run."""
