"""``sparklog topics``: a module an action."""
