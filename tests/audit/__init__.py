"""The audit log: records, the file they are written to, and what the `audit` commands read out of it."""
