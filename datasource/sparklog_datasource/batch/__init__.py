"""What batch reads alone have: the sizes of their tasks, and the cut that all tasks see."""
