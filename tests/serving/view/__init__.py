"""Tests of the view of the cluster and of the scheduler extender."""
