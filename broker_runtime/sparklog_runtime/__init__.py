"""Brokers in Spark executors, the supervisor on the driver, and the demo."""
