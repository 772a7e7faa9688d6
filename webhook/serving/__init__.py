"""HTTP over TLS: the /mutate endpoint, health and metrics."""
