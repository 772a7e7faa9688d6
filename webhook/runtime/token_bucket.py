"""A token bucket. The caller passes the current time."""


class TokenBucket:
    """Holds up to `burst` tokens; one is added every `refill_seconds`. It starts full at `now`."""

    def __init__(self, burst: int, refill_seconds: float, now: float) -> None:
        self._burst = burst
        self._refill_seconds = refill_seconds
        self._tokens = float(burst)
        self._at = now

    def take(self, now: float) -> float:
        """Take a token and return 0. If there is no token, return the seconds until there is one."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) / self._refill_seconds)
        self._at = now
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) * self._refill_seconds
