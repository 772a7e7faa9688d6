"""The requests of a pod by its annotations."""
