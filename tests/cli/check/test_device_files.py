"""ResourceClaimTemplates beside the pods of a file, and kinds that a cluster file lacks."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.devices import (
    OF_DRIVER,
    claiming,
    exactly,
    make_cards,
    make_resource_claim,
    make_slice,
)
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run

_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": OF_DRIVER}}]},
}


def _pod(claim: str) -> Any:
    return make_pod("p").namespace("default").spec(resourceClaims=claiming(claim, template=True))


def _check(run: Run, folder: Path, *objects: Any) -> dict[str, Any]:
    """Return the JSON of `objects` on a node with two cards; its file has no ResourceClaimTemplates."""
    cluster = folder / "cluster.json"
    cluster.write_text(as_list(make_node_object("a"), _CLASS, make_slice("a", *make_cards(2))))
    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(*objects))
    found: dict[str, Any] = lines(outcome.output)[-1]
    return found


@pytest.mark.parametrize(("count", "verdict"), [(2, "Feasible"), (3, "Infeasible")])
def test_a_claim_template_beside_the_pods_counts(run: Run, tmp_path: Path, count: int, verdict: str) -> None:
    template = make_resource_claim("cards", exactly(count=count), template=True)

    assert _check(run, tmp_path, template, _pod("cards"))["verdict"] == verdict


def test_a_claim_template_beside_the_pods_says_nothing_about_others(run: Run, tmp_path: Path) -> None:
    line = _check(run, tmp_path, make_resource_claim("cards", exactly(), template=True), _pod("others"))

    assert line["verdict"] == "Unknown"
    assert line["message"].endswith(", which is not modelled: add resourceclaimtemplates to the cluster file.")


@pytest.mark.parametrize(
    ("spec", "kinds"),
    [
        (
            {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]},
            "persistentvolumeclaims, persistentvolumes, storageclasses",
        ),
        ({"hostNetwork": True, "hostUsers": False}, ""),
    ],
    ids=["volumes", "what no kind decides"],
)
def test_the_kinds_are_named_if_nothing_else_is_missing(
    run: Run, tmp_path: Path, spec: dict[str, Any], kinds: str
) -> None:
    message = _check(run, tmp_path, make_pod("p").spec(**spec))["message"]

    assert message.partition("which is not modelled")[2] == (f": add {kinds} to the cluster file." if kinds else ".")
