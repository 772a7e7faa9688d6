"""What is injected: the workload's intent, the rules that turn it into edits, the one writer of pods."""
