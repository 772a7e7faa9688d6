"""Mutation run: small faults put into the code one at a time, and the tests that notice them."""
