"""The check of PlacementPolicy objects, by their status."""

from typing import Any

import pytest

from placement_doctor.check import Severity
from placement_doctor.cluster import Cluster
from placement_doctor.source import Source
from tests.doctor.healthy import deployment, found, make_installation, objects, texts
from tests.support.objects.manifests import Object, container_of
from webhook.serving.policies.policy_status import GoodGeneration, status_of

REJECTED = "rejected, so the generation before it stays in force, if there is one"
ERROR, WARNING = Severity.ERROR, Severity.WARNING


def following(*content: Object, **fields: Any) -> Cluster:
    """Return a healthy installation whose servers follow these objects."""
    server = deployment()
    container_of(server)["args"].append("--policy-source=crd")
    given: dict[str, Any] = {"policy_objects": content, **fields}
    return make_installation(objects={**objects(), Source.DEPLOYMENTS: (server,)}, **given)


def policy_object(generation: int = 1, *, errors: tuple[str, ...] = (), conflict: str = "") -> Object:
    """Return an object with the status that a server has written to its first generation."""
    content: Object = {"metadata": {"name": "of-team-a", "generation": 1}}
    status = status_of(content, GoodGeneration("0123456789ab", {}, 1), errors, "2026-01-01T00:00:00Z", conflict)
    return {"metadata": {"name": "of-team-a", "generation": generation}, "status": status}


def test_an_object_that_is_in_force_is_no_fault() -> None:
    assert found(following(policy_object()), "policy-objects") == []


@pytest.mark.parametrize(
    ("content", "severity", "text", "remedy"),
    [
        (
            policy_object(errors=("spec.a: Forbidden: unknown field",)),
            ERROR,
            f"PlacementPolicy of-team-a: spec: {REJECTED}: spec.a: Forbidden: unknown field",
            "`kubectl edit placementpolicy of-team-a`; `placement-webhook policy check FILE` has all errors",
        ),
        (
            policy_object(conflict="another has its priority"),
            WARNING,
            "PlacementPolicy of-team-a: spec: never in force: another has its priority",
            "`kubectl edit placementpolicy of-team-a`",
        ),
        (
            policy_object(generation=2),
            WARNING,
            "PlacementPolicy of-team-a: status: no server has judged generation 2, so it is not in force",
            "`kubectl -n placement-webhook logs deployment/placement-webhook` has the reason",
        ),
    ],
    ids=["rejected", "conflict", "not-judged"],
)
def test_an_object_without_effect_is_found(content: Object, severity: Severity, text: str, remedy: str) -> None:
    (finding,) = found(following(content), "policy-objects")
    assert (finding.severity, finding.remedy) == (severity, remedy)
    assert texts([finding]) == [text]


def test_objects_that_are_not_served_are_found() -> None:
    (finding,) = found(following(policy_objects=None), "policy-objects")
    assert (finding.severity, finding.remedy) == (ERROR, "`kubectl apply -k deploy/crd` installs it")


def test_objects_that_were_not_read_or_not_followed_are_no_fault() -> None:
    assert found(following(policy_objects=None, refusals={Source.POLICY: "403"}), "policy-objects") == []
    assert found(make_installation(policy_objects=None), "policy-objects") == []
