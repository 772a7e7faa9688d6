"""Tests of KubeSchedulerConfiguration files."""
