"""The real Volcano, KAI, Kueue, Coscheduling and Karpenter on the control plane: `make test-schedulers`."""
