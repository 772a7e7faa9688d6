"""The parts of a real node: programs, files, namespaces."""
