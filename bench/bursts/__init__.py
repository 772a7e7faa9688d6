"""The parts of `make bench-burst`."""
