"""Settings, metrics and memory of the process."""
