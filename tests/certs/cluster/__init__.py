"""Registration, probe and report in a cluster."""
