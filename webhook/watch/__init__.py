"""The live view: list and watch each kind and keep it in the cluster cache."""
