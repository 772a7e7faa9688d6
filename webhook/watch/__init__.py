"""The live view: list and watch each kind, and store its objects in the cluster cache."""
