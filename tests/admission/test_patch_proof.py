"""A patch is proven by `jsonpatch`: it gives the pod that was judged, and the user keeps every value."""

from typing import Any

import pytest

from tests.support.admission import TYPE, admit_pod, make_request, policy_with
from tests.support.objects.builders import make_pod
from webhook.admission.patch_proof import UnprovenPatchError, prove_pod_patch
from webhook.admission.pod_content import PodContent
from webhook.admission.verdict import Patched

POLICY = policy_with()
POD = make_pod("trainer").annotate(TYPE, "training").label("app", "web").toleration("mine").obj()


def operations() -> list[dict[str, Any]]:
    verdict = admit_pod(POD, POLICY)
    assert isinstance(verdict, Patched)
    return verdict.operations


def prove(patch: list[dict[str, Any]]) -> None:
    prove_pod_patch(PodContent.of(make_request(POD), {}), patch, POLICY)


def test_the_patch_of_an_admission_is_proven_and_changes_nothing_meanwhile() -> None:
    before = repr((POD, operations()))

    prove(operations())

    assert repr((POD, operations())) == before


@pytest.mark.parametrize(
    ("added", "places"),
    [
        pytest.param([{"op": "remove", "path": "/metadata/labels/app"}], "/metadata/labels/app", id="removes a value"),
        pytest.param(
            [{"op": "replace", "path": "/metadata/labels/app", "value": "ours"}],
            "/metadata/labels/app",
            id="replaces a value",
        ),
        pytest.param(
            [{"op": "add", "path": "/spec/tolerations/0", "value": {"key": "ours"}}],
            "/spec/tolerations/0/key",
            id="moves an item of a list",
        ),
        pytest.param(
            [{"op": "add", "path": "/spec/hostNetwork", "value": True}], "/spec/hostNetwork", id="adds something else"
        ),
        pytest.param(
            [{"op": "replace", "path": "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/weight", "value": 100.0}],  # noqa: E501
            "it differs",
            id="writes another type of number",
        ),
    ],
)  # fmt: skip
def test_another_patch_is_refused_with_the_places(added: list[dict[str, Any]], places: str) -> None:
    with pytest.raises(UnprovenPatchError, match="does not give what was judged") as failure:
        prove(operations() + added)

    assert places in str(failure.value)


def test_a_long_place_is_cut_to_120_characters() -> None:
    annotation = "x" * 200
    with pytest.raises(UnprovenPatchError) as failure:
        prove([*operations(), {"op": "add", "path": f"/metadata/annotations/{annotation}", "value": "ours"}])

    place = str(failure.value).partition(": ")[2]
    assert place == f"/metadata/annotations/{annotation}"[:119] + "…"


def test_a_patch_that_lacks_an_operation_is_refused() -> None:
    with pytest.raises(UnprovenPatchError, match="/spec/schedulerName"):
        prove([each for each in operations() if each["path"] != "/spec/schedulerName"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"op": "remove", "path": "/metadata/labels/absent"},
        {"op": "add", "path": "/spec/absent/field", "value": 1},
        {"op": "replace", "path": "/spec/tolerations/9", "value": 1},
        {"op": "frob", "path": "/spec"},
        {"op": "add", "path": "spec", "value": 1},
    ],
    ids=lambda each: f"{each['op']} {each['path']}",
)
def test_a_patch_that_does_not_apply_is_refused_without_the_content_of_the_pod(wrong: dict[str, Any]) -> None:
    with pytest.raises(UnprovenPatchError, match="the patch cannot be applied: ") as failure:
        prove([wrong])

    assert "web" not in str(failure.value)
