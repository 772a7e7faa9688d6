"""The mutation of an exported policy."""

import re
from itertools import islice

from tests.differential.random_objects.exported_cases import random_policies
from tests.mutation.exported.exporting import exported, objects_of
from tests.support.admission import policy_with
from webhook.mutation.edits.node_edits import PREFERRED_NODES, REQUIRED_NODE
from webhook.mutation.exported import export
from webhook.policy.policy_set import PolicySet


def test_all_edits_are_one_mutation_without_typed_objects() -> None:
    """The API server encodes the pod for each mutation, and a typed object in a list panics it."""
    every = exported(
        workloadTypes={
            "training": {
                "nodeUsage": {"allow": ["a", "b"], "prefer": {"a": 1, "b": 2}},
                "binPacking": True,
                "extraTolerations": [{"key": "x"}],
            }
        }
    )

    (mutation,) = objects_of(every, "MutatingAdmissionPolicy")[0]["spec"]["mutations"]
    assert "JSONPatch{" in mutation["jsonPatch"]["expression"]
    assert "Object" not in mutation["jsonPatch"]["expression"]


def _variables(expression: str) -> list[str]:
    return re.findall(r"\bvariables\.([A-Za-z]+)", re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression))


def test_every_variable_is_declared_before_its_first_use_and_used() -> None:
    """The API server refuses an expression with a variable that is declared later."""
    exports = (export(PolicySet(policy)).objects for policy in random_policies(1))
    for objects in islice(filter(None, exports), 40):
        spec = objects[0]["spec"]
        expressions = [each["jsonPatch"]["expression"] for each in spec["mutations"]]
        declared, used = set[str](), set[str]()
        for each in spec["variables"]:
            used.update(_variables(each["expression"]))
            assert used <= declared, each
            declared.add(each["name"])
        assert declared >= {name for each in expressions for name in _variables(each)}
        unused = declared - used - {name for each in expressions for name in _variables(each)}
        assert unused <= {"mayIncludeCard", "productLabel"}
        for expression in (*expressions, *(each["expression"] for each in spec["variables"])):
            bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", expression)
            assert [bare.count(each) for each in "([{"] == [bare.count(each) for each in ")]}"]


def test_operations_are_those_of_the_rules_in_their_order_and_the_record_is_last() -> None:
    """An operation of a list sees the pod with those before it, and a parent must be there first."""
    spec = objects_of(exported(), "MutatingAdmissionPolicy")[0]["spec"]
    (mutation,) = spec["mutations"]
    paths = [
        "/metadata/labels", "/metadata/annotations", "/spec/affinity", "/spec/affinity/nodeAffinity",
        f"/spec/affinity/nodeAffinity/{REQUIRED_NODE[-1]}", f"/spec/affinity/nodeAffinity/{PREFERRED_NODES[-1]}",
        "/spec/tolerations", "/spec/tolerations/-", "/metadata/labels/jobtype", "/spec/affinity/podAffinity",
        "/spec/schedulerName", "/metadata/annotations/maip.mxsf.io~1placement-policy",
        "/metadata/annotations/maip.mxsf.io~1placement-rules",
    ]  # fmt: skip
    places = [mutation["jsonPatch"]["expression"].find(f'path: "{path}"') for path in paths]

    assert -1 not in places
    assert places == sorted(places)


def test_recorded_rules_are_kept_if_this_revision_has_recorded_them() -> None:
    """A pod template can have the record of an earlier revision, whose rules need not be in force."""
    (mutation,) = objects_of(exported(), "MutatingAdmissionPolicy")[0]["spec"]["mutations"]
    recorded = 'variables.own[?"maip.mxsf.io/placement-rules"].orValue("").split(",")'

    before, _, after = mutation["jsonPatch"]["expression"].partition(recorded)
    revision = f'variables.own[?"maip.mxsf.io/placement-policy"].orValue("") == "{policy_with().identity}"'
    assert before.endswith(f"({revision} ? ")
    assert after.startswith(" : [])")
