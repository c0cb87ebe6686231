"""How a client authenticates itself on a connection."""
