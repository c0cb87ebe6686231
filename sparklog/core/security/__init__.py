"""Who asks, and what a request needs before it is served."""
