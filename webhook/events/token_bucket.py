"""Token buckets on a given clock, and one for each source of Events.

Source: k8s.io/client-go/tools/events and tools/record/events_cache.go, EventSourceObjectSpamFilter
"""

from webhook.runtime.byte_cache import ByteCache

_SOURCE_BURST = 25
_SOURCE_REFILL_SECONDS = 300.0
_SOURCES_BYTES = 1024 * 1024
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


class SourceBuckets:
    """A bucket for each source, of the sources used last: 25 Events at once, then one in five minutes."""

    def __init__(self) -> None:
        self._buckets: ByteCache[str, TokenBucket] = ByteCache(_SOURCES_BYTES)

    def take(self, source: str, now: float) -> float:
        """Take a token of `source` and return 0; if there is none, return the seconds until there is one."""
        bucket = self._buckets.get(source)
        if bucket is None:
            bucket = TokenBucket(_SOURCE_BURST, _SOURCE_REFILL_SECONDS, now)
            self._buckets.put(source, bucket, _BUCKET_BYTES + len(source))
        return bucket.take(now)
