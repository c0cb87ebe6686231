"""``sparklog doctor``: facts are gathered once, pure checks examine them, findings name the remedy."""
