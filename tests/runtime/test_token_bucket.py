"""A token bucket as that of client-go: a burst, then one token at a time."""

from webhook.runtime.token_bucket import TokenBucket


def test_bucket_gives_its_burst_and_then_one_at_a_time() -> None:
    bucket = TokenBucket(3, 10.0, now=0.0)
    assert [bucket.take(0.0) for _ in range(4)] == [0.0, 0.0, 0.0, 10.0]
    assert [bucket.take(now) for now in (5.0, 7.5, 10.0)] == [5.0, 2.5, 0.0]


def test_bucket_holds_no_more_than_its_burst() -> None:
    bucket = TokenBucket(3, 10.0, now=0.0)
    assert [bucket.take(1000.0) for _ in range(4)] == [0.0, 0.0, 0.0, 10.0]
