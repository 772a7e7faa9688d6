"""The use of cards as a real Prometheus has it, in the forms in which dcgm-exporter is scraped."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import orjson
import pytest

from tests.controlplane.client import Object
from tests.monitoring.scraping import prometheus_on
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.on_cluster.held import ago
from tests.support.programs.cluster_files import as_list
from tests.support.programs.command import Outcome, run_here
from tests.support.servers.threads import LocalServer, served_in_thread

ENGINE, UTILIZATION, POWER = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"
HOUR, SCRAPE = 3600, 60
EXPORTER = 'namespace="monitoring",pod="dcgm-exporter-x2x4z"'
MIG = "nvidia.com/mig-1g.10gb"


def own(pod: str) -> str:
    """Return the labels of a pod as with honorLabels."""
    return f'namespace="team-a",pod="{pod}"'


def exported(pod: str) -> str:
    """Return the labels of a pod as without honorLabels."""
    return f'{EXPORTER},exported_namespace="team-a",exported_pod="{pod}"'


def series(now: int) -> Iterator[tuple[str, str, float, int]]:
    """Yield metric, labels, value, and for how long it has been so until `now`, in seconds."""
    for number in range(2):
        yield ENGINE, f'UUID="GPU-idle-{number}",{own("idle")}', 0, 2 * HOUR
        yield POWER, f'UUID="GPU-idle-{number}",{own("idle")}', 43, 2 * HOUR
        yield "DCGM_FI_DEV_FB_USED", f'UUID="GPU-idle-{number}",{own("idle")}', 15360, 2 * HOUR
    yield ENGINE, f'UUID="GPU-exported",{exported("exported")}', 0, 2 * HOUR
    yield UTILIZATION, f'UUID="GPU-old",{exported("by-utilization")}', 0, 2 * HOUR
    for part, value in (("1", 0), ("2", 0.4)):
        # The power is that of the whole card, of which another part works.
        yield ENGINE, f'UUID="GPU-mig",GPU_I_ID="{part}",{own(f"mig-{part}")}', value, 2 * HOUR
        yield POWER, f'UUID="GPU-mig",GPU_I_ID="{part}",{own(f"mig-{part}")}', 300, 2 * HOUR
    yield ENGINE, f'UUID="GPU-busy",{own("busy")}', 0.7, 2 * HOUR
    yield UTILIZATION, f'UUID="GPU-busy",{own("busy")}', 0, 2 * HOUR
    yield ENGINE, f'UUID="GPU-hot",{own("hot")}', 0, 2 * HOUR
    yield POWER, f'UUID="GPU-hot",{own("hot")}', 400, 2 * HOUR
    yield ENGINE, f'UUID="GPU-half-0",{own("half-known")}', 0, 2 * HOUR
    yield ENGINE, f'UUID="GPU-new",{own("new-metric")}', 0, HOUR // 4
    for name in ("server", "asked", "triton"):
        yield ENGINE, f'UUID="GPU-{name}",{own(name)}', 0, 2 * HOUR


def lines(now: int) -> Iterator[str]:
    """Yield the samples in OpenMetrics, and those of servers, of which one is asked once a minute."""
    of_metric: dict[str, list[str]] = {}
    for metric, labels, value, seconds in series(now):
        times = range(now - seconds, now + 1, SCRAPE)
        of_metric.setdefault(metric, []).extend(f"{metric}{{{labels}}} {value} {time}" for time in times)
    # The exporter of Triton writes its counters without the ending of OpenMetrics.
    vllm, triton = "vllm:request_success_total", "nv_inference_request_success"
    for metric, name, step in ((vllm, "server", 0), (vllm, "asked", 1), (triton, "triton", 1)):
        for number, at in enumerate(range(now - 2 * HOUR, now + 1, SCRAPE)):
            line = f"{metric}{{{own(name)}}} {number * step} {at}"
            of_metric.setdefault(metric.removesuffix("_total"), []).append(line)
    for metric, found in of_metric.items():
        yield f"# TYPE {metric} {'counter' if metric.startswith('vllm') else 'gauge'}"
        yield from found
    yield "# EOF\n"


def running(name: str, cards: int = 1, resource: str = "nvidia.com/gpu", *, since: int = 3 * HOUR) -> PodBuilder:
    pod = make_pod(name).namespace("team-a").limits(**{resource: cards}).node_name("n1").creation(ago(since))
    return pod.status(phase="Running", startTime=ago(since))


@pytest.fixture(scope="module")
def address(prometheus: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the URL of a Prometheus that has scraped for two hours."""
    folder = tmp_path_factory.mktemp("prometheus")
    samples = folder / "samples"
    samples.write_text("\n".join(lines(int(time.time()))))
    made = ["tsdb", "create-blocks-from", "openmetrics", str(samples), str(folder / "data")]
    subprocess.run([str(prometheus["promtool"]), *made], check=True, capture_output=True)
    with prometheus_on(prometheus["prometheus"], folder, {}) as started:
        yield started.url


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = ("exported", "by-utilization", "busy", "hot", "new-metric", "server", "asked", "triton", "without-metric")
    pods = [
        *(running(name) for name in names),
        running("idle", 2),
        running("half-known", 2),
        running("mig-1", resource=MIG),
        running("mig-2", resource=MIG),
    ]
    node = make_node_object("n1", capacity={"nvidia.com/gpu": 16, MIG: 2})
    node["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastHeartbeatTime": ago(0)}]
    path = tmp_path_factory.mktemp("cluster") / "cluster.json"
    path.write_text(as_list(node, *pods))
    return path


MALFORMED_URL = '--prometheus: Invalid value: "(not shown)"'
MALFORMED = (
    *("localhost", "http://", "user:secret@host", "ftp://user:secret@host", "http://user:secret/@127.0.0.1:1"),
    *("http://user:1/secret@127.0.0.1:1", "http://user:1?secret@127.0.0.1:1", "http://user:secret", "http://u:secret@"),
)


def reclaim(cluster: Path, url: str, *options: str) -> Outcome:
    return run_here("reclaim", "--cluster", str(cluster), "--prometheus", url, "-o", "json", *options)


def test_idle_pods_are_those_whose_cards_have_all_done_nothing(address: str, cluster: Path) -> None:
    found: list[Object] = orjson.loads(reclaim(cluster, address, "--older-than", "1h").output)["held"]

    assert {each["name"]: each["why"] for each in found if each["class"] == "idle"} == {
        "idle": "GPU 0 %, at most 43 W, 30 GiB in use",
        "exported": "GPU 0 %",
        "by-utilization": "GPU 0 %",
        "mig-1": "GPU 0 %",
        "server": "GPU 0 %, 0 requests/s",
    }
    assert {(each["atLeast"], each["seconds"]) for each in found} == {(True, HOUR)}


def test_a_time_for_which_there_is_no_metric_is_not_idle(address: str, cluster: Path) -> None:
    done = reclaim(cluster, address, "--older-than", "150m")

    assert (done.code, orjson.loads(done.output)["held"]) == (0, [])


def test_without_the_metric_there_is_no_class(prometheus: dict[str, Path], cluster: Path, tmp_path: Path) -> None:
    with prometheus_on(prometheus["prometheus"], tmp_path, {}) as started:
        done = reclaim(cluster, started.url)

    assert (done.code, orjson.loads(done.output)["held"]) == (0, [])
    assert done.errors == f"idle cards are not known: Prometheus has no {ENGINE} and no {UTILIZATION}\n"


@pytest.mark.parametrize(
    ("url", "code", "expected"),
    [
        pytest.param("http://user:secret@127.0.0.1:1", 1, "Cannot connect to host 127.0.0.1:1", id="nothing listens"),
        pytest.param("http://user:s%2Fecret@127.0.0.1:1/", 1, "--prometheus http://127.0.0.1:1/: Cannot", id="escaped"),
        *(
            pytest.param(url, 2, f"{MALFORMED_URL}; must be http://HOST or https://HOST, with", id=url)
            for url in MALFORMED
        ),
    ],
)
def test_an_error_of_the_url_is_one_line_with_a_remedy(cluster: Path, url: str, code: int, expected: str) -> None:
    done = reclaim(cluster, url)

    assert (done.code, done.errors.count("\n")) == (code, 1)
    assert expected in done.errors
    assert "secret" not in done.errors
    assert done.errors.endswith("give the URL of a Prometheus, such as http://127.0.0.1:9090 of kubectl port-forward\n")


def test_another_server_is_no_prometheus(address: str, cluster: Path) -> None:
    done = reclaim(cluster, f"{address}/federate")

    assert (done.code, done.errors.count("\n")) == (1, 1)
    assert "HTTP 404 is no answer to a query; give the URL of a Prometheus" in done.errors


def test_the_class_needs_a_prometheus(cluster: Path) -> None:
    done = run_here("reclaim", "--cluster", str(cluster), "--class", "idle")

    assert done.code == 2
    assert "--class idle needs --prometheus URL." in done.errors


def answered(cluster: Path, part: bytes, most_parts: int = 1) -> tuple[Outcome, int]:
    """Return the outcome with a server that answers each query with `part` repeated, and the number that it sent."""
    sent = list[int]()

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                for _ in range(most_parts):
                    self.wfile.write(part)
                    sent.append(1)

        def log_message(self, *_: object) -> None:
            pass

    with LocalServer(("127.0.0.1", 0), Answering) as server, served_in_thread(server):
        return reclaim(cluster, f"http://127.0.0.1:{server.server_port}"), len(sent)


def test_an_answer_without_an_end_is_not_read_to_its_end(cluster: Path) -> None:
    done, sent = answered(cluster, b" " * 2**20, 256)

    assert (done.code, done.errors.count("\n")) == (1, 1)
    assert "the response is larger than 67108864 bytes" in done.errors
    assert sent < 128


@pytest.mark.parametrize(
    "result", ["x", {"metric": "x", "value": [0, "0"]}, {"metric": {}, "value": [0, {}]}, {"metric": {}, "value": []}]
)
def test_an_answer_of_another_form_is_one_line(cluster: Path, result: object) -> None:
    done, _ = answered(cluster, orjson.dumps({"status": "success", "data": {"result": [result]}}))

    assert (done.code, done.errors.count("\n")) == (1, 1)
    assert "HTTP 200 is no answer to a query" in done.errors


def test_labels_that_are_no_texts_are_of_no_pod(cluster: Path) -> None:
    result = {"metric": {"namespace": {}, "pod": ["x"], "UUID": {}}, "value": [0, "0"]}

    assert answered(cluster, orjson.dumps({"status": "success", "data": {"result": [result]}}))[0].code == 0


def test_an_error_of_the_server_is_cut(cluster: Path) -> None:
    done, _ = answered(cluster, orjson.dumps({"status": "error", "error": "x" * 2**20}))

    assert (done.code, len(done.errors) < 1000) == (1, True)
