"""What benchmarks run: servers, clusters and clients."""
