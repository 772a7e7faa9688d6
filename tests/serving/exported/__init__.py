"""Tests of the policy that the API server itself applies."""
