"""`make bench-outcome`: GPUs allocated when pods of a real trace fill a cluster, by scheduler configuration."""
