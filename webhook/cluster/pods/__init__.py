"""Running, pending, bound and nominated pods of a cluster."""
