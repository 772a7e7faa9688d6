"""The scorer: filter, score, select, as kube-scheduler does, over a snapshot."""
