"""Access rules, as clients create, delete and list them."""
