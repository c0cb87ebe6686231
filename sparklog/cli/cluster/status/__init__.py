"""``sparklog status``: what is well of a cluster, and what is not."""
