"""The view of the cluster for admissions."""
