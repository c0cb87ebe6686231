"""What brokers and the controller say to each other; clients are not served these."""
