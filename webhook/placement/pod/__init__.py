"""What the plugins read of a pending pod."""
