"""The allocation of devices to the claims of a pod, node by node."""
