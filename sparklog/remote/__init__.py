"""The remote tier's stores: whole, immutable objects on HDFS, S3 or a shared folder, with one port."""
