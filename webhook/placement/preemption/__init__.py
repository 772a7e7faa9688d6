"""Which pods kube-scheduler evicts for a pod that no node can take: its plugin DefaultPreemption."""
