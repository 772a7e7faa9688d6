"""How long things took, as a Prometheus histogram that is cheap to keep."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

# From a patch without a check to a check over a very large cluster, then to where the API server has given up.
BOUNDS_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


_MOST_FROM_ELSEWHERE = 100_000


class Durations(Collector):
    """A histogram of seconds. An instance is for one thread, the one that scrapes included.

    The library's own takes a lock and a loop over the buckets for each observation, twice for each pod.
    """

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text
        self._counts = [0] * (len(BOUNDS_SECONDS) + 1)
        self._sum_seconds = 0.0
        self._from_elsewhere: deque[float] = deque()

    def observe(self, seconds: float) -> None:
        """Count one that took so long."""
        self._counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self._sum_seconds += seconds

    def observe_from_thread(self, seconds: float) -> None:
        """Count one that took so long, from another thread than the instance's own."""
        self._from_elsewhere.append(seconds)
        if len(self._from_elsewhere) > _MOST_FROM_ELSEWHERE:  # no scrape has drained it
            self._from_elsewhere.popleft()

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The histogram, its buckets cumulative."""
        while self._from_elsewhere:
            self.observe(self._from_elsewhere.popleft())
        bounds = [*map(floatToGoString, BOUNDS_SECONDS), "+Inf"]
        family = HistogramMetricFamily(self._name, self._text)
        family.add_metric((), list(zip(bounds, accumulate(self._counts), strict=True)), self._sum_seconds)
        yield family
