"""The real Volcano, KAI, Kueue and coscheduling beside the control plane: `make test-schedulers`."""
