"""What a start needs: its options, its folders, Spark, and the checks until it is ready."""
