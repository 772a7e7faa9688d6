"""The live view: list and watch of each kind, kept in the cluster cache."""
