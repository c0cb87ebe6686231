"""Records, their offsets, and the producers that write them."""
