"""The commands that correct mistyped keys and values change the nodes that have them, and no others."""

import pytest

from placement_doctor.source import Source
from tests.doctor.healthy import PRODUCT, USAGE, commands_of, found, make_installation, node_of, objects, read_of
from tests.support.admission import policy_with
from tests.support.objects.manifests import Object

WRONG = "maip.mxsf.io/nodeusage"
H20 = f"{PRODUCT}=NVIDIA-H20:NoSchedule"
LABEL, TAINT = ["kubectl", "label", "node"], ["kubectl", "taint", "node"]


def remedies(*changed: Object) -> list[list[list[str]]]:
    """Return the commands of each finding on these nodes and the healthy ones."""
    installation = read_of(Source.NODES, *changed, *objects()[Source.NODES])
    return [commands_of(each.remedy) for each in found(installation, "node-spelling")]


def training_node(name: str, labels: dict[str, str | None], taints: list[str]) -> Object:
    made = node_of("training", labels=labels, taints=[H20, *taints])
    made["metadata"]["name"] = name
    return made


@pytest.mark.parametrize(
    ("labels", "taints", "commands"),
    [
        pytest.param({USAGE: None}, [], [[*LABEL, "a", f"{WRONG}-", f"{USAGE}=training"]], id="moved"),
        pytest.param({}, [], [[*LABEL, "a", f"{WRONG}-"]], id="the right key is there, with its own value"),
        pytest.param(
            {USAGE: None},
            [f"{WRONG}=training:NoSchedule"],
            [
                [*LABEL, "a", f"{WRONG}-", f"{USAGE}=training"],
                [*TAINT, "a", f"{WRONG}:NoSchedule-", f"{USAGE}=training:NoSchedule", "--overwrite"],
            ],
            id="label and taint",
        ),
    ],
)
def test_a_mistyped_key_is_moved(labels: dict[str, str | None], taints: list[str], commands: list[list[str]]) -> None:
    assert remedies(training_node("a", {**labels, WRONG: "training"}, taints)) == [commands]


def test_a_mistyped_key_of_a_taint_is_moved_without_its_label() -> None:
    own = training_node("a", {}, [f"{WRONG}=training:NoExecute"])

    assert remedies(own) == [
        [[*TAINT, "a", f"{WRONG}:NoExecute-", f"{USAGE}=training:NoExecute", "--overwrite"]],
    ]


def test_a_pattern_of_the_policy_is_no_value_that_a_node_should_have() -> None:
    policy = policy_with(allowedProducts={"NVIDIA-H20*": ["team-a"]})

    assert found(make_installation(policy=policy), "node-spelling") == []


def test_a_mistyped_value_is_corrected_in_the_labels_and_in_the_taints_that_have_it() -> None:
    label = training_node("label", {USAGE: "trainning"}, [f"{USAGE}=training:NoSchedule"])
    taint = training_node("taint", {}, [f"{USAGE}=trainning:NoSchedule"])
    both = training_node("both", {USAGE: "trainning"}, [f"{USAGE}=trainning:NoExecute"])

    assert remedies(label, taint, both) == [
        [
            [*LABEL, "both", "label", f"{USAGE}=training", "--overwrite"],
            [*TAINT, "both", f"{USAGE}=training:NoExecute", "--overwrite"],
            [*TAINT, "taint", f"{USAGE}=training:NoSchedule", "--overwrite"],
        ]
    ]
