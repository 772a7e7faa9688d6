"""A real Prometheus that scrapes replicas of `serve` and the API server, and evaluates the shipped rules."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import urllib3

from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.controlplane.process import Process
from tests.monitoring.monitored import RULES
from tests.support.programs.programs import forked

Object = dict[str, Any]

_LISTENING = re.compile(r'msg="Listening on".* address=127\.0\.0\.1:(\d+)')


@dataclass(frozen=True, slots=True)
class Replica:
    """A running `serve`: its webhook URL and the address of its admin port."""

    url: str
    admin: str

    def is_ready(self) -> bool:
        """Return whether its view of the cluster is there, so that verdicts have it."""
        return urllib3.request("GET", f"http://{self.admin}/readyz", retries=False).status == 200


class Prometheus:
    """A running Prometheus, asked over its HTTP API."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = urllib3.PoolManager()

    def get(self, path: str, **fields: str) -> Any:
        """Return the `data` of an answer of the API."""
        answer = self._http.request("GET", f"{self.url}/api/v1/{path}", fields=fields, retries=False).json()
        assert answer["status"] == "success", f"{fields}: {answer.get('error')}"
        return answer["data"]

    def query(self, expression: str) -> list[Object]:
        """Return the samples of an expression at this moment."""
        samples: list[Object] = self.get("query", query=expression)["result"]
        return samples

    def value(self, expression: str) -> float:
        """Return the value of an expression with at most one sample; 0 for none."""
        samples = self.query(expression)
        return float(samples[0]["value"][1]) if samples else 0.0

    def wait_value(self, expression: str, least: float) -> None:
        """Return once the expression has at least this value."""
        wait_for(lambda: self.value(expression) >= least, lambda: f"{expression}: {self.query(expression)}")

    @property
    def metrics(self) -> set[str]:
        """Return the names of all metrics that were scraped."""
        return set(self.get("label/__name__/values"))

    def rules(self) -> list[Object]:
        """Return the rules, once each of them has been evaluated."""

        def evaluated() -> list[Object] | None:
            rules = [rule for group in self.get("rules")["groups"] for rule in group["rules"]]
            return rules if rules and all(rule["health"] != "unknown" for rule in rules) else None

        return wait_for(evaluated, "the evaluation of the rules")

    def close(self) -> None:
        """Close the connections."""
        self._http.clear()


@contextmanager
def serving(folder: Path, tls_dir: Path, *arguments: str) -> Iterator[Replica]:
    """Run `serve` with these arguments on free ports."""
    folder.mkdir()
    log = folder / "serve.log"
    flags = [f"--tls-dir={tls_dir}", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"]
    process = Process(Path(forked()), ["serve", *flags, f"--audit={folder / 'audit.jsonl'}", *arguments], log)
    try:
        process.wait_ready(lambda: b'"serving"' in log.read_bytes())
        lines = [orjson.loads(line) for line in log.read_bytes().splitlines() if b'"serving"' in line]
        yield Replica(f"https://{lines[0]['webhook']}/mutate", lines[0]["admin"])
    finally:
        process.stop()


@contextmanager
def scraping(
    program: Path, folder: Path, replicas: list[Replica], controller: str, control_plane: ControlPlane
) -> Iterator[Prometheus]:
    """Run Prometheus with the shipped rules; scrape replicas, certs controller and API server all the time.

    `controller` is the address of the controller's admin port.
    """
    folder.mkdir()
    credentials = control_plane.folder / "credentials"
    tls = {"ca_file": "ca.crt", "cert_file": "admin.crt", "key_file": "admin.key"}
    api_server = {
        "job_name": "apiserver",
        "scheme": "https",
        # It has megabytes of metrics.
        "scrape_interval": "1s",
        "tls_config": {key: str(credentials / name) for key, name in tls.items()},
        "static_configs": [{"targets": [control_plane.url.removeprefix("https://")]}],
    }
    webhook = {"job_name": "placement-webhook", "static_configs": [{"targets": [each.admin for each in replicas]}]}
    certs = {"job_name": "placement-webhook-certs", "static_configs": [{"targets": [controller]}]}
    configuration = {
        "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
        "rule_files": [str(RULES)],
        "scrape_configs": [webhook, certs, api_server],
    }
    with prometheus_on(program, folder, configuration) as running:
        yield running


@contextmanager
def prometheus_on(program: Path, folder: Path, configuration: Object) -> Iterator[Prometheus]:
    """Run Prometheus with `configuration` in `folder`, where `data` has its blocks."""
    file, log = folder / "prometheus.json", folder / "prometheus.log"
    file.write_text(json.dumps(configuration))
    flags = [f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}", "--web.listen-address=127.0.0.1:0"]
    process = Process(program, flags, log)
    try:
        process.wait_ready(lambda: _LISTENING.search(log.read_text()) is not None)
        found = _LISTENING.search(log.read_text())
        assert found is not None
        prometheus = Prometheus(f"http://127.0.0.1:{found[1]}")
        process.wait_ready(lambda: "Server is ready to receive web requests" in log.read_text())
        yield prometheus
        prometheus.close()
    finally:
        process.stop()


def with_grafana_variables(expression: str, values: Mapping[str, str]) -> str:
    """Return a query of the dashboard as Grafana sends it."""
    for name, value in values.items():
        expression = expression.replace(f"${name}", value)
    assert "$" not in expression, expression
    return expression
