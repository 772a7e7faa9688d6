"""The scorer: filter, score and select nodes of a snapshot as kube-scheduler does."""
