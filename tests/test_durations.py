"""Durations are shown as the library's own histogram would show them."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from webhook.durations import BOUNDS_SECONDS, Durations

SECONDS = st.floats(0, 20) | st.sampled_from(BOUNDS_SECONDS)


@given(st.lists(SECONDS, max_size=20))
def test_the_text_is_that_of_the_librarys_histogram(observed: list[float]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    durations = Durations("seconds_spent", "Time.")
    ours.register(durations)
    histogram = Histogram("seconds_spent", "Time.", registry=theirs, buckets=BOUNDS_SECONDS)

    for seconds in observed:
        durations.observe(seconds)
        histogram.observe(seconds)

    library = [line for line in generate_latest(theirs).decode().splitlines() if "_created" not in line]
    assert generate_latest(ours).decode().splitlines() == library
