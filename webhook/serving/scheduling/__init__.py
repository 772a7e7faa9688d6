"""Which review is worked on, when, and in which thread."""
