"""Tests of webhook/kube/pod."""
