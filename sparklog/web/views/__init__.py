"""What each view shows, as JSON: a function of a viewer and a question."""
