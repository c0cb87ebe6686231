"""``sparklog topics``, with a module for each action."""
