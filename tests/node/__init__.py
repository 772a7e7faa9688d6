"""The image and the manifests on a real node: containerd, kubelet, kube-proxy and the control plane of the tests."""
