"""The remote logs of a broker's partitions: ``copying`` writes and deletes, ``reading`` answers fetches."""
