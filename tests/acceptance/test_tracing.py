"""The real API server sends the trace of its caller to the webhook, whose spans continue it."""

from pathlib import Path

import orjson
import urllib3

from tests.controlplane.cluster import Cluster
from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.on_cluster.registered import registered_as_shipped
from tests.support.servers.otlp_receiver import attributes_of, receiving
from webhook.serving.tracing.opentelemetry_spans import exporting

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_spans_of_an_admission_are_in_the_trace_of_the_client_that_creates_the_pod(
    cluster: Cluster, tmp_path: Path
) -> None:
    credentials = cluster.control_plane.folder / "credentials"
    client = urllib3.PoolManager(
        ca_certs=str(credentials / "ca.crt"),
        cert_file=str(credentials / "admin.crt"),
        key_file=str(credentials / "admin.key"),
    )
    pod = make_pod("traced").annotate(TYPE, "training").obj()
    url = f"{cluster.control_plane.url}/api/v1/namespaces/{cluster.namespace}/pods"
    headers = {"Content-Type": "application/json", "traceparent": f"00-{TRACE}-{CALLER}-01"}

    with receiving() as receiver:
        with exporting(f"{receiver.url}/v1/traces"), registered_as_shipped(cluster, tmp_path):
            answer = client.request("POST", url, body=orjson.dumps(pod), headers=headers, retries=False)
        client.clear()
        spans = [span for span in receiver.named("admission") if span.trace_id.hex() == TRACE]

    assert answer.status == 201, answer.data
    assert [attributes_of(span)["admission.outcome"] for span in spans] == ["Patched"]
