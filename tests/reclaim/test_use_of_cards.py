"""The use of a pod's cards by the answers of a Prometheus, without one."""

import re
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

import orjson
import pytest

from placement_reclaim.classes.pods import PodUse
from placement_reclaim.prometheus import read_uses
from tests.support.servers.threads import LocalServer, served_in_thread

ENGINE, UTILIZATION, POWER = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"
MEMORY, REQUESTS, STEPS = "DCGM_FI_DEV_FB_USED", "rate", "count_over_time"
NOW, HOUR = 1_772_366_400, 3600
POD = ("team-a", "pod")
Sample = tuple[str, dict[str, str], float]
"""The metric, or the function of those that are not the highest value of one; the labels; and the value."""


def card(uuid: str, **labels: str) -> dict[str, str]:
    return {"namespace": "team-a", "pod": "pod", "UUID": uuid, **labels}


def exported(labels: dict[str, str]) -> dict[str, str]:
    """Return the labels as without honorLabels: `pod` is that of the exporter."""
    own = {f"exported_{key}": labels[key] for key in ("namespace", "pod")}
    return {**labels, "namespace": "monitoring", "pod": "dcgm-exporter", **own}


def uses_of(samples: Sequence[Sample], seconds: int = HOUR) -> dict[tuple[str, str], PodUse]:
    """Return the uses by a server that answers with `samples`; every activity is known for all of the time."""
    queries: list[dict[str, str]] = []

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            query = {key: values[0] for key, values in parse_qs(body).items()}
            queries.append(query)
            found = re.search(r"\((\w+)\((\w*)", query["query"])
            assert found is not None
            function, metric = found.groups()
            given = [each for each in samples if each[0] == (metric if function == "max_over_time" else function)]
            if function == STEPS and not given:
                given = [(STEPS, each[1], 999.0) for each in samples if each[0] == metric]
            result = [{"metric": labels, "value": [NOW, str(value)]} for _, labels, value in given]
            answer = orjson.dumps({"status": "success", "data": {"result": result}})
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with LocalServer(("127.0.0.1", 0), Answering) as server, served_in_thread(server):
        found = read_uses(f"http://127.0.0.1:{server.server_port}", seconds, NOW)
    assert {each["time"] for each in queries} == {str(NOW)}
    return found


def test_the_cards_of_a_pod_count_together() -> None:
    """Their number and memory are sums, the power is the highest, and one that works is enough."""
    samples = [(ENGINE, card(f"GPU-{number}"), 0.0) for number in range(3)]
    samples += [(POWER, card(f"GPU-{number}"), watts) for number, watts in enumerate((40.0, 60.0, 50.0))]
    samples += [(MEMORY, card(f"GPU-{number}"), mib) for number, mib in enumerate((1024.0, 2048.0, 4096.0))]
    samples += [(REQUESTS, {"namespace": "team-a", "pod": "pod"}, 0.0)]

    assert uses_of(samples) == {POD: PodUse(3, True, 60, 7168, 0)}
    for number in range(3):
        busy = [(ENGINE, card(f"GPU-{number}"), 0.1), *(each for index, each in enumerate(samples) if index != number)]
        assert uses_of(busy) == {POD: PodUse(3, False, 60, 7168, 0)}


@pytest.mark.parametrize("ordered", [list, reversed])
@pytest.mark.parametrize(
    ("metric", "low", "high", "expected"),
    [
        (ENGINE, 0.0, 0.4, PodUse(1, False)),
        (POWER, 40.0, 200.0, PodUse(1, False, 200)),
        (MEMORY, 1024.0, 2048.0, PodUse(1, True, 0, 2048)),
    ],
)
def test_of_several_jobs_that_scrape_a_card_the_highest_value_counts(
    ordered: Callable[[Sequence[Sample]], Sequence[Sample]], metric: str, low: float, high: float, expected: PodUse
) -> None:
    two = [(metric, card("GPU-0"), low), (metric, exported(card("GPU-0")), high)]
    activity = [] if metric == ENGINE else [(ENGINE, card("GPU-0"), 0.0)]

    assert uses_of([*activity, *ordered(two)]) == {POD: expected}


@pytest.mark.parametrize(
    ("seconds", "steps", "is_idle"),
    [(HOUR, 10, False), (HOUR, 11, True), (HOUR, 12, True), (HOUR + 299, 11, True), (HOUR + 300, 11, False)],
)
def test_a_card_is_idle_only_if_at_most_one_step_of_its_metric_is_missing(
    seconds: int, steps: int, is_idle: bool
) -> None:
    samples = [(ENGINE, card("GPU-0"), 0.0), (STEPS, card("GPU-0"), float(steps))]

    assert uses_of(samples, seconds)[POD].is_idle is is_idle


def test_the_first_metric_that_a_pod_has_counts_for_all_of_its_cards() -> None:
    other = {"namespace": "team-b", "pod": "other"}
    samples = [
        *((ENGINE, card(f"GPU-{number}"), 0.0) for number in range(2)),
        *((UTILIZATION, card(f"GPU-{number}"), 50.0) for number in range(2)),
        *((UTILIZATION, {**other, "UUID": f"GPU-{number}"}, 0.0) for number in range(2)),
    ]

    assert uses_of(samples) == {POD: PodUse(2), ("team-b", "other"): PodUse(2)}


def test_the_power_of_a_card_is_not_that_of_its_parts() -> None:
    part = card("GPU-0", GPU_I_ID="1")

    assert uses_of([(ENGINE, part, 0.0), (POWER, part, 300.0)]) == {POD: PodUse(1)}


def test_a_pod_without_a_metric_of_activity_has_no_use() -> None:
    activity = (ENGINE, {**card("GPU-0"), "pod": "other"}, 0.0)
    others = [(metric, card("GPU-1"), 1.0) for metric in (POWER, MEMORY, REQUESTS)]

    assert uses_of([activity, *others]) == {("team-a", "other"): PodUse(1)}
