"""Rules, edits and the writer of pods."""
