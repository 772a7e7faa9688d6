"""Edits of a pod, and the patch they make."""
