"""What a client asks first: which versions, which brokers, which leaders and coordinators."""
