"""The Spark data source: ``spark.read.format("sparklog")`` and its siblings."""
