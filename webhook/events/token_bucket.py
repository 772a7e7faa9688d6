"""Token buckets on a given clock, and one for each key.

Source: k8s.io/client-go/tools/events and tools/record/events_cache.go, EventSourceObjectSpamFilter
"""

from webhook.runtime.byte_cache import ByteCache

_BUCKETS_BYTES = 1024 * 1024
_BUCKET_BYTES = 256


class TokenBucket:
    """Holds up to `burst` tokens; one is added every `refill_seconds`. It starts full at `now`."""

    def __init__(self, burst: int, refill_seconds: float, now: float) -> None:
        self._burst = burst
        self._refill_seconds = refill_seconds
        self._tokens = float(burst)
        self._at = now

    def available(self, now: float) -> int:
        """Return the number of tokens at `now`."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) / self._refill_seconds)
        self._at = now
        return int(self._tokens)

    def take(self, now: float, count: int = 1) -> float:
        """Take `count` tokens and return 0; if there are fewer, return the seconds until there are enough."""
        if self.available(now) >= count:
            self._tokens -= count
            return 0.0
        return (count - self._tokens) * self._refill_seconds


class TokenBuckets:
    """A bucket for each key, of the keys used last."""

    def __init__(self, burst: int, refill_seconds: float) -> None:
        self._burst = burst
        self._refill_seconds = refill_seconds
        self._buckets: ByteCache[str, TokenBucket] = ByteCache(_BUCKETS_BYTES)

    def of(self, key: str, now: float) -> TokenBucket:
        """Return the bucket of `key`; a new one is full at `now`."""
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(self._burst, self._refill_seconds, now)
            self._buckets.put(key, bucket, _BUCKET_BYTES + len(key))
        return bucket
