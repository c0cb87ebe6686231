"""Small files beside logs: checkpoints, and facts about directories."""
