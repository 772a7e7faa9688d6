"""The mutation rules, one per file. A rule turns a workload into edits and does not depend on other rules."""
