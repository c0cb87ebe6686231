"""What one seed stands for, drawn before the run: settings, clients, faults, administrators' operations."""
