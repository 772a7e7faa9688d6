"""Tests of what the process needs: settings, metrics, memory."""
