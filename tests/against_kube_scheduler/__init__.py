"""Placements beside the real kube-scheduler."""
