"""Requests of a pod, in the terms of each backend."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.requests import WRITTEN
from webhook.backends.backend import BatchRequest
from webhook.backends.registry import BACKENDS

_requests = st.builds(
    BatchRequest,
    queue=st.none() | st.just("q"),
    gang=st.none() | st.just("g"),
    gang_size=st.none() | st.just(4),
    gpu_fraction=st.none() | st.just("0.5"),
    preemptible=st.none() | st.booleans(),
)


@pytest.mark.parametrize(
    ("backend", "attribute", "written"),
    [(backend, attribute, written) for backend, rows in WRITTEN.items() for attribute, written in rows],
    ids=str,
)
def test_each_attribute_alone_is_written_or_named_as_missing(
    backend: str, attribute: dict[str, Any], written: str | None
) -> None:
    expressed = BACKENDS[backend].express(BatchRequest(**attribute))

    assert [str(each) for each in expressed.fields] == ([written] if written else [])
    assert {name for name, _ in expressed.missing} == (set(attribute) if written is None else set())


@given(backend=st.sampled_from(sorted(set(BACKENDS) - {"kueue"})), request=_requests)
def test_attributes_are_expressed_each_by_itself(backend: str, request: BatchRequest) -> None:
    """The size of a gang is the exception: the PodGroup that a gang names has it."""
    parts = {each: getattr(request, each) for each in BatchRequest.__slots__}
    alone = [BACKENDS[backend].express(BatchRequest(**{name: value})) for name, value in parts.items()]

    expressed = BACKENDS[backend].express(request)

    assert {*expressed.fields} == {field for each in alone for field in each.fields}
    missing = {each for part in alone for each in part.missing if each[0] != "gang_size" or request.gang is None}
    assert {*expressed.missing} == missing
