"""Read and write certificates in a directory or a cluster, and probe the server that uses them."""
