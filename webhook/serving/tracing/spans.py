"""OpenTelemetry spans for the steps of an admission. Without a tracer, each costs one function call.

    admission ─┬─ parse       the AdmissionReview
               ├─ evaluate    the policy, or a decision that is reused
               │     └─ place the placement check, unless it is cached
               └─ audit       until the audit record is written

There is one tracer for the process, as in OpenTelemetry's API. A review that moves from the event loop to the worker
thread is parsed and evaluated again, so its trace contains these spans twice.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from webhook.runtime.admission_counts import AdmissionCount


class _Nothing:
    """A context manager that does nothing. It takes half the time of contextlib.nullcontext."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        pass


NOTHING = _Nothing()
"""The span of a step that is not traced."""


class Tracer(Protocol):
    """Creates spans. The functions of this module call the methods of the same names."""

    def admission(self, headers: Mapping[str, str]) -> AbstractContextManager[Any]:
        """Return the span of one admission."""

    def step(self, name: str) -> AbstractContextManager[Any]:
        """Return the span of one step."""

    def note(self, decision: str, counted: AdmissionCount) -> None:
        """Set the attributes of the current admission."""


_tracer: Tracer | None = None


def set_tracer(tracer: Tracer | None) -> None:
    """Trace the admissions of this process with `tracer` from now on, or stop tracing if it is None."""
    global _tracer
    _tracer = tracer


def are_made() -> bool:
    """Return whether admissions are traced."""
    return _tracer is not None


def admission(headers: Mapping[str, str]) -> AbstractContextManager[Any]:
    """Return the span of one admission, in the trace that the request `headers` name."""
    return NOTHING if _tracer is None else _tracer.admission(headers)


def step(name: str) -> AbstractContextManager[Any]:
    """Return the span of one step of the current admission."""
    return NOTHING if _tracer is None else _tracer.step(name)


def note(decision: str, counted: AdmissionCount) -> None:
    """Set the attributes of the current admission."""
    if _tracer is not None:
        _tracer.note(decision, counted)
