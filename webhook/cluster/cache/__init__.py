"""The cluster cache: it takes lists and watch events and returns immutable snapshots."""
