"""Tests of the answers, their cache and their audit records."""
