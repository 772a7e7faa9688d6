"""A collector of OpenTelemetry on loopback that keeps the spans that it receives over OTLP/HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.servers.threads import LocalServer, served_in_thread


@dataclass(frozen=True, slots=True)
class Receiver:
    """What was received: the URL of the collector, its spans, and the attributes of their resources."""

    url: str
    spans: list[Span] = field(default_factory=list)
    resources: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def named(self, name: str) -> list[Span]:
        """Return the spans of this name, in the order of their start."""
        return sorted((span for span in self.spans if span.name == name), key=lambda span: span.start_time_unix_nano)

    def children(self, parent: Span) -> list[Span]:
        """Return the spans whose parent is this one, in the order of their start."""
        found = [span for span in self.spans if span.parent_span_id == parent.span_id]
        return sorted(found, key=lambda span: span.start_time_unix_nano)


def attributes_of(span: Span) -> dict[str, str]:
    """Return the text attributes of a span."""
    return {each.key: each.value.string_value for each in span.attributes}


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run the collector until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
            receiver.paths.append(self.path)
            for of_resource in request.resource_spans:
                receiver.resources.append({a.key: a.value.string_value for a in of_resource.resource.attributes})
                for of_scope in of_resource.scope_spans:
                    receiver.spans.extend(of_scope.spans)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with LocalServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
        with served_in_thread(server):
            yield receiver
