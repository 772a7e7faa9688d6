"""Tests of the backends: the fields of pods that schedulers read."""
