"""Messages of transactions: between producers, coordinators and the leaders of partitions."""
