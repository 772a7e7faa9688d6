"""The results of `check`, `mutate` and `capacity` for the pods of manifests."""
