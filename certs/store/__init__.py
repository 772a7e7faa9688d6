"""Where certificates are kept: a directory, a cluster's Secret and caBundle; and the probe of who serves them."""
