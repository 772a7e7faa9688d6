"""Tests of the facts of Kubernetes."""
