"""Tests of the rules of Kubernetes."""
