"""One file, one rule. A rule turns a workload's intent into edits and knows no other rule."""
