"""Bin-packing by an exported policy."""

import pytest

from tests.mutation.exported.exporting import exported, variables_of

TYPE = {"nodeUsage": {"allow": ["a"]}}


@pytest.mark.parametrize(
    ("topology", "is_packed"), [("host", False), ("zone", True)], ids=["the same domain", "another domain"]
)
def test_a_type_whose_spreading_may_undo_its_packing_is_not_packed(topology: str, is_packed: bool) -> None:
    found = exported(workloadTypes={"t": {**TYPE, "binPacking": True, "spread": {"topology": topology}}})

    assert ('variables.type in ["t"]' in variables_of(found)["isPacked"]) is is_packed
    assert ("bin-packing" in str(found.without_effect[0])) is not is_packed
