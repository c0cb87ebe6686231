"""Settings of topics and brokers, and levels of loggers, as clients read and change them."""
