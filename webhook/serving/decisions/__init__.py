"""Decisions on reviews: make or reuse a decision, and render it as response and audit record."""
