"""Messages of atomic writes, of sparklog's own: between tasks, drivers and coordinators of writes."""
