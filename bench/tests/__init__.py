"""The short forms of the benchmarks, as tests."""
