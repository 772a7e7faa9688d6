"""Benchmarks: the whole of `/mutate` against a bare aiohttp TLS handler, in one run."""
