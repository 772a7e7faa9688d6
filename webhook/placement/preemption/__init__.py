"""The plugin DefaultPreemption: the pods that kube-scheduler evicts for a pod that no node can take."""
