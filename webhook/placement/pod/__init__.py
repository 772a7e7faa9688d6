"""The parts of a pending pod that plugins read."""
