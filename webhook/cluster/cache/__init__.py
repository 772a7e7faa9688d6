"""The cluster cache: it stores the objects of lists and watch events, and returns immutable snapshots."""
