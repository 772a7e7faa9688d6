"""Tests of `webhook.doctor`."""
