"""The process that maintains the certificates of an installation: it watches, plans a step, and writes."""
