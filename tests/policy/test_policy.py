"""What a policy says of resources, and of types and products by namespace."""

from typing import Any, Literal

import pytest

from tests.support.admission import policy_with
from webhook.policy.loader import built_in_policy, parse_policy
from webhook.policy.policy import Withheld, allows_namespace, opt_out_namespaces
from webhook.policy.products import namespaces_of_product
from webhook.policy.spec.admission import NamespaceSelector

HEAD = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        ([], []),
        (["cpu", "memory"], []),
        (["nvidia.com/gpu"], ["nvidia"]),
        (["nvidia.com/gpu.shared"], ["nvidia"]),
        (["nvidia.com/mig-1g.5gb"], ["nvidia"]),
        (["nvidia.com/gpumem"], ["nvidia"]),
        (["volcano.sh/vgpu-number"], ["nvidia"]),
        (["huawei.com/Ascend910"], ["huawei"]),
        (["huawei.com/ascend910"], []),
        (["cambricon.com/mlu370", "cpu"], ["cambricon"]),
        (["hygon.com/dcu"], ["hygon"]),
        (["amd.com/gpu", "nvidia.com/gpu"], ["nvidia", "amd"]),
        (["example.com/gpu"], []),
    ],
    ids=lambda value: ",".join(value) or "none",
)
def test_resource_determines_the_accelerator(resources: list[str], wanted: list[str]) -> None:
    """Several come in the policy's order."""
    assert [accelerator.name for accelerator in built_in_policy().accelerators_of(resources)] == wanted


@pytest.mark.parametrize(
    ("patterns", "namespace", "wanted"),
    [
        (["*"], "default", True),
        ([], "default", False),
        (["team-a"], "team-a", True),
        (["team-a"], "team-ab", False),
        (["team-*"], "team-", True),
        (["team-*"], "team-b", True),
        (["team-*"], "ateam-b", False),
        (["*-gpu", "ml"], "ml", True),
        (["*-gpu", "ml"], "a-gpu", True),
        (["a.b"], "axb", False),
    ],
)
def test_a_type_is_for_the_namespaces_of_its_patterns(patterns: list[str], namespace: str, wanted: bool) -> None:
    usage = "{nodeUsage: {allow: [a]}, allowedNamespaces: [" + ", ".join(f'"{each}"' for each in patterns) + "]}"
    policy = parse_policy(HEAD + f"spec: {{workloadTypes: {{t: {usage}}}}}\n", "policy.yaml")

    assert allows_namespace(policy.spec.workload_types["t"], namespace) is wanted


@pytest.mark.parametrize(
    ("product", "allowed"),
    [
        ("NVIDIA-L4", None),
        ("NVIDIA-H20", ("team-a", "lab-*")),
        ("NVIDIA-H200", ("lab-*", "team-b")),
        ("NVIDIA-A100-SXM4-80GB", ()),
        ("nvidia-h20", None),
    ],
)
def test_a_product_is_for_the_namespaces_of_every_pattern_that_it_matches(
    product: str, allowed: tuple[str, ...] | None
) -> None:
    allowed_products = "{NVIDIA-H20: [team-a, lab-*], NVIDIA-H200: [lab-*], 'NVIDIA-H200*': [team-b], NVIDIA-A*: []}"
    policy = parse_policy(HEAD + f"spec: {{allowedProducts: {allowed_products}}}\n", "policy.yaml")

    assert namespaces_of_product(policy.spec, product) == allowed


@pytest.mark.parametrize("fields", [{"mode": "shadow"}, {"canaryPercent": 5}], ids=str)
def test_policy_in_place_of_another_is_enforced_for_every_pod(fields: dict[str, object]) -> None:
    selector = NamespaceSelector(match_labels={"team": "a"})

    spec = policy_with(**fields).selected_by(selector, 7).spec

    assert (spec.mode, spec.canary_percent, spec.namespace_selector, spec.priority) == ("enforce", 100, selector, 7)


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        ({"reclaim": {"namespaces": ["team-a"]}}, False),
        ({"priority": 7}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, False),
        ({"unknownNamespace": "deny"}, False),
        ({"productAffinity": False}, True),
        ({"keyDomain": "gpu.example.com"}, True),
    ],
)
def test_the_revision_changes_with_what_is_injected_or_denied(spec: dict[str, Any], changes: bool) -> None:
    assert (policy_with(**spec).revision != policy_with().revision) is changes


def test_each_decision_in_place_of_a_policy_has_an_identity_of_its_own() -> None:
    """Results are cached by it."""
    policy = policy_with()
    handlings: tuple[Literal["leave", "deny"], ...] = ("leave", "deny")
    withheld = [
        policy.withheld_as(Withheld(handling, reason), name)
        for handling in handlings
        for reason in ("one", "another")
        for name in ("", "team-a")
    ]

    assert len({each.identity for each in (policy, *withheld)}) == 9
    assert policy.withheld is None


@pytest.mark.parametrize("floor", ["off", "warn", "deny"])
@pytest.mark.parametrize("listed", [None, [], ["team-a"], ["team-*", "lab"]])
def test_pods_of_the_listed_namespaces_may_opt_out_or_of_all_unless_the_floor_denies(
    listed: list[str] | None, floor: str
) -> None:
    """An empty list allows it in no namespace."""
    spec = policy_with(placementCheck={"mode": "deny", "floor": floor}, optOutNamespaces=listed).spec

    assert opt_out_namespaces(spec) == (tuple(listed) if listed is not None else () if floor == "deny" else ("*",))
