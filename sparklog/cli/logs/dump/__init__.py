"""``sparklog dump-log``: what is in the files of a log directory, in the words of Kafka's DumpLogSegments."""
