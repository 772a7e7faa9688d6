"""What `check`, `mutate` and `capacity` make of the pods of manifests."""
