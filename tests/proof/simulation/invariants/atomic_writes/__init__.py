"""Rules of atomic writes and of batch reads, which see them whole or not at all."""
