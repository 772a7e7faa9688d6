"""Tests of `webhook.placement.capacity`."""
