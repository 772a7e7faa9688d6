"""What kube-scheduler does with the pods that the webhook admitted."""
