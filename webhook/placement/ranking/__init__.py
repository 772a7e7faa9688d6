"""The nodes for a pod by score, kept and brought up to date."""
