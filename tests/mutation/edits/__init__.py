"""Tests of edits of a pod."""
