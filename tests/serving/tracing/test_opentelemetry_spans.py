"""Spans of admissions: their tree, their attributes, and the trace of the caller."""

import asyncio
import json
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import structlog
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.objects.manifests import ROOT
from tests.support.programs.cluster_files import write_cluster
from tests.support.programs.command import run_here
from tests.support.servers.loopback import closed_port
from tests.support.servers.otlp_receiver import Receiver, attributes_of, receiving
from tests.support.servers.server import World, review_bytes, running, write_certificate
from webhook.runtime.admission_counts import AdmissionCount
from webhook.serving.tracing import spans
from webhook.serving.tracing.opentelemetry_spans import exporting

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SMALL = make_pod("small").annotate(TYPE, "training").obj()
LARGE = make_pod("large").annotate(TYPE, "training").annotate("example.com/notes", "x" * 40_000).obj()
DENIED = make_pod("denied").annotate(TYPE, "no-such-type").obj()


def post(url: str, tls: ssl.SSLContext, body: bytes, **headers: str) -> bytes:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"} | headers)
    with urllib.request.urlopen(request, timeout=30, context=tls) as answer:
        content: bytes = answer.read()
    return content


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Receiver, list[dict[str, Any]]]:
    """The spans of four admissions by `serve`, after it stopped, and its audit records."""
    folder = tmp_path_factory.mktemp("tracing")
    write_certificate(folder)
    tls = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    loopback, audit = "127.0.0.1:0", folder / "audit.jsonl"
    command = [sys.executable, "-P", "-m", "webhook", "serve", f"--tls-dir={folder}", f"--audit={audit}"]
    command += [f"--listen={loopback}", f"--admin-listen={loopback}", f"--cluster={write_cluster(folder)}"]
    environment = {"PYTHONPATH": str(ROOT), "POD_NAME": "replica-7", "PATH": ""}
    with receiving() as receiver:
        command.append(f"--otlp-endpoint={receiver.url}")
        with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as process:
            assert process.stderr is not None
            url = f"https://{json.loads(process.stderr.readline())['webhook']}/mutate"
            post(url, tls, review_bytes(SMALL, uid="small"), traceparent=f"00-{TRACE}-{CALLER}-01")
            post(url, tls, review_bytes(LARGE, uid="large"))
            post(url, tls, review_bytes(DENIED, uid="denied"))
            post(url, tls, review_bytes(SMALL, uid="unsampled"), traceparent=f"00-{TRACE}-{CALLER}-00")
            with pytest.raises(urllib.error.HTTPError, match="404"):
                post(url.replace("/mutate", "/no-admission"), tls, b"{}")
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
    return receiver, [json.loads(line) for line in audit.read_bytes().splitlines()]


Traced = tuple[Receiver, list[dict[str, Any]]]


def admission_of(traced: Traced, uid: str) -> Span:
    """Return the span of the admission with the decision that the audit log has for this review."""
    (decision,) = [record["decision"] for record in traced[1] if record["uid"] == uid]
    (span,) = [each for each in traced[0].named("admission") if attributes_of(each)["admission.decision"] == decision]
    return span


@pytest.mark.slow
@pytest.mark.parametrize("uid", ["small", "large"])
def test_an_admission_has_a_span_for_each_step(traced: Traced, uid: str) -> None:
    receiver, _ = traced
    admission = admission_of(traced, uid)
    steps = receiver.children(admission)
    (evaluate,) = [span for span in steps if span.name == "evaluate"]

    assert admission.kind == Span.SPAN_KIND_SERVER
    assert [span.name for span in steps] == ["parse", "evaluate", "audit"]
    assert [span.name for span in receiver.children(evaluate)] == ["place"]
    assert {span.trace_id for span in (*steps, *receiver.children(evaluate))} == {admission.trace_id}


def test_the_trace_of_the_caller_is_continued(traced: Traced) -> None:
    admission = admission_of(traced, "small")

    assert (admission.trace_id.hex(), admission.parent_span_id.hex()) == (TRACE, CALLER)
    assert admission_of(traced, "large").parent_span_id == b""


def test_a_request_that_is_no_admission_has_no_span(traced: Traced) -> None:
    assert {span.name for span in traced[0].spans} == {"admission", "parse", "evaluate", "place", "audit"}
    assert all("admission.decision" in attributes_of(span) for span in traced[0].named("admission"))


def test_a_caller_that_does_not_sample_decides(traced: Traced) -> None:
    assert len(traced[0].named("admission")) == 3
    assert len(traced[1]) == 4


@pytest.mark.parametrize(("uid", "outcome", "verdict"), [("small", "Patched", "Feasible"), ("denied", "Denied", None)])
def test_attributes_are_those_of_the_audit_record(traced: Traced, uid: str, outcome: str, verdict: str | None) -> None:
    attributes = attributes_of(admission_of(traced, uid))

    assert attributes["admission.outcome"] == outcome
    assert attributes.get("admission.verdict") == verdict
    if verdict:
        assert attributes["admission.workload_type"] == "training"


def test_spans_are_those_of_the_replica(traced: Traced) -> None:
    receiver, _ = traced

    assert set(receiver.paths) == {"/v1/traces"}
    assert {each["service.name"] for each in receiver.resources} == {"placement-webhook"}
    assert {each["service.instance.id"] for each in receiver.resources} == {"replica-7"}


def test_an_internal_error_is_an_error_of_the_span() -> None:
    with receiving() as receiver:
        with exporting(f"{receiver.url}/v1/traces"), spans.admission({}):
            spans.note("decision-1", AdmissionCount("Error"))
        (span,) = receiver.spans

    assert span.status.code == Status.STATUS_CODE_ERROR
    assert attributes_of(span) == {"admission.decision": "decision-1", "admission.outcome": "Error"}


def test_admissions_go_on_without_a_collector(tmp_path: Path) -> None:
    async def admit() -> bytes:
        async with running(World(), tmp_path) as server:
            return await asyncio.to_thread(post, server.url, server.tls, review_bytes(SMALL))

    with structlog.testing.capture_logs() as logs, exporting(f"http://127.0.0.1:{closed_port()}/v1/traces"):
        answer = json.loads(asyncio.run(admit()))

    assert answer["response"]["allowed"] is True
    assert {entry["event"] for entry in logs} >= {"spans cannot be exported"}


@pytest.mark.parametrize("url", ["collector:4318", "grpc://collector:4317", "http://", "http://collector:99999", ""])
def test_an_endpoint_is_an_http_url(url: str) -> None:
    outcome = run_here("serve", "--tls-dir", "tls", "--otlp-endpoint", url)

    assert outcome.code == 2
    assert f'"{url}" must be an HTTP URL, such as http://collector:4318' in outcome.errors


@pytest.mark.slow
def test_a_machine_without_opentelemetry_is_told_what_to_install() -> None:
    script = "import sys; sys.modules['opentelemetry'] = None; from webhook.cli import main; main()"
    command = [sys.executable, "-c", script, "serve", "--tls-dir=tls", "--otlp-endpoint=http://collector:4318"]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "pip install 'placement-webhook[tracing]'" in done.stderr
