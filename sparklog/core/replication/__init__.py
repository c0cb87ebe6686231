"""Leader, follower, ISR, high watermark, leader epochs, purgatory: one partition's replication, pure."""
