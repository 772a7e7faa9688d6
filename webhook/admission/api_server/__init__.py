"""The admission plugins of the API server itself, for a pod that no API server has seen."""
