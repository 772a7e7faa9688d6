"""`make test-ray`: a sweep on a local Ray of two workers."""
