"""``sparklog demo``: the README's main job and what it shows of itself on the screen."""
