"""HTTP over TLS: connections, limits, clients, health and certificates."""
