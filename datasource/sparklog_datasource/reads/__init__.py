"""What batch and streaming reads share: which offsets, of which partitions, and reading them."""
