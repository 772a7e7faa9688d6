"""The main job on a real kube-apiserver and a real kube-scheduler."""
