"""The parts of `make abuse`."""
