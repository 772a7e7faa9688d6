"""The audit log: one JSON record an admission, chained by hashes."""
