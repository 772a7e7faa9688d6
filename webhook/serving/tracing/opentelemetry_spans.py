"""Trace admissions with OpenTelemetry, and export the spans over OTLP/HTTP in a separate thread.

This module needs the extra `tracing`. The server calls it through `webhook.serving.tracing.spans`.
"""

import logging
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import structlog
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from requests import Session
from requests.adapters import HTTPAdapter
from urllib3.util.ssl_ import create_urllib3_context

from webhook.runtime.admission_counts import AdmissionCount
from webhook.serving.tracing import spans
from webhook.watch.trust import trusting_as_go

# A stopping server exports its last spans for about the sum of both at most.
_LAST_EXPORTS_SECONDS = 3.0
_EXPORT_SECONDS = 3.0

_NAME = "placement-webhook"


class AdmissionTracer:
    """Creates the spans of admissions. A request with a W3C `traceparent` continues the trace of its caller.

    API servers with tracing enabled send this header.

    Source: k8s.io/apiserver/pkg/util/webhook/authentication.go
    """

    def __init__(self, provider: trace.TracerProvider) -> None:
        self._tracer = provider.get_tracer(_NAME)
        self._propagator = TraceContextTextMapPropagator()

    def admission(self, headers: Mapping[str, str]) -> AbstractContextManager[Any]:
        """Return the span of one admission. Its parent is the span in the `headers`."""
        parent = self._propagator.extract({name.lower(): value for name, value in headers.items()})
        # An overdue request is answered with an HTTP status, which the API server's own span has.
        return self._tracer.start_as_current_span(
            "admission", parent, trace.SpanKind.SERVER, record_exception=False, set_status_on_exception=False
        )

    def step(self, name: str) -> AbstractContextManager[Any]:
        """Return the span of one step.

        Exceptions are not recorded as errors, because some are normal, such as the end of a time slice.
        """
        if not trace.get_current_span().is_recording():
            return spans.NOTHING
        return self._tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False)

    def note(self, decision: str, counted: AdmissionCount) -> None:
        """Set the attributes of the current span."""
        span = trace.get_current_span()
        span.set_attribute("admission.decision", decision)
        span.set_attribute("admission.outcome", counted.outcome)
        if counted.workload_type:
            span.set_attribute("admission.workload_type", counted.workload_type)
        if counted.kind:
            span.set_attribute("admission.kind", counted.kind)
        if counted.verdict is not None:
            span.set_attribute("admission.verdict", counted.verdict)
        if counted.outcome == "Error":
            span.set_status(trace.StatusCode.ERROR)


@contextmanager
def exporting(endpoint: str) -> Iterator[None]:
    """Trace the admissions of this process until the block ends; export the spans to the URL `endpoint`.

    The environment variables `OTEL_…` set the other options: sampler, headers, batch sizes and resource attributes.
    """
    attributes = {
        "service.name": os.environ.get("OTEL_SERVICE_NAME") or _NAME,
        "service.instance.id": os.environ.get("POD_NAME") or socket.gethostname(),
    }
    session = Session()
    session.mount("https://", _TrustingAdapter())
    exporter = OTLPSpanExporter(endpoint, timeout=_EXPORT_SECONDS, session=session)
    provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    logger, handler = logging.getLogger("opentelemetry"), _LogToStructlog(logging.WARNING)
    logger.addHandler(handler)
    logger.propagate = False
    spans.set_tracer(AdmissionTracer(provider))
    try:
        yield
    finally:
        spans.set_tracer(None)
        giving_up = threading.Timer(_LAST_EXPORTS_SECONDS, exporter.shutdown)
        giving_up.start()
        provider.shutdown()
        giving_up.cancel()
        logger.removeHandler(handler)
        logger.propagate = True


class _TrustingAdapter(HTTPAdapter):
    """Connects to collectors with the certificate checks of Go, in which most clients of collectors are written."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, ssl_context=trusting_as_go(create_urllib3_context()), **kwargs)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        return super().proxy_manager_for(*args, ssl_context=trusting_as_go(create_urllib3_context()), **kwargs)


class _LogToStructlog(logging.Handler):
    """Logs the messages of OpenTelemetry, such as about a collector that does not answer, as events of this server."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().warning("spans cannot be exported", error=record.getMessage())
