"""The real schedulers, running on the control plane."""
