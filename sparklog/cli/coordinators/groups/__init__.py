"""``sparklog groups``: list, describe and delete consumer groups, and reset or delete their offsets."""
