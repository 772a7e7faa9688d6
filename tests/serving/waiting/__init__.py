"""Tests of pods that wait and keep their room."""
