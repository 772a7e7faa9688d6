"""The order of the reviews, and the thread of each."""
