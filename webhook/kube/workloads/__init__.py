"""Objects that create pods, and the pods they create."""
