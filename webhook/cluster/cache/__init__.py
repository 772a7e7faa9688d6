"""The cluster cache: lists and watch events in, immutable snapshots out."""
