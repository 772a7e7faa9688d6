"""KubeSchedulerConfiguration files."""
