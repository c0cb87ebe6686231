"""Many seeds: run in processes, kept in a file, shrunk to what fails, measured against mutants."""
