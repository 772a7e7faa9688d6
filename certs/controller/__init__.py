"""The process that keeps the certificates of an installation in order: it watches, plans a step, and writes."""
