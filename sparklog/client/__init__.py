"""Producer, consumer, admin and metadata cache: what users, the data source and the tools talk through."""
