"""Parts of batch reads alone: the sizes of their tasks, and the cut that all tasks see."""
