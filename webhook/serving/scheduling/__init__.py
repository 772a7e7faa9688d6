"""The order in which reviews are processed, and the thread of each."""
