"""The mutation of an exported policy."""

from tests.mutation.exported.exporting import exported, objects_of


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
