"""The webhook as a user runs it: its image on a real node. Collected by `make test-node` alone."""
