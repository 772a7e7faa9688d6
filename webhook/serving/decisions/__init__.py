"""The decision on a review: made or reused, rendered as answer and audit record, and proven."""
