"""``sparklog brokers``: what brokers there are, and operations on them."""
