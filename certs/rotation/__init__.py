"""The certificate life that the controller keeps: what it finds, what it plans, what it writes. Pure."""
