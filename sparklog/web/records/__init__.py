"""Records of a topic as the page shows them: read in bounded steps, without a group, without a commit."""
