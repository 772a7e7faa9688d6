"""Node affinity by an exported policy."""

from tests.mutation.exported.exporting import exported, variables_of


def test_only_a_term_without_any_requirement_stays_as_it_is() -> None:
    """A term can select nodes by their name alone; without the requirement, it would bypass the others."""
    lacking = variables_of(exported())["lacking"]

    is_empty = "t.?matchExpressions.orValue([]).size() == 0 && t.?matchFields.orValue([]).size() == 0"
    assert lacking.startswith(f"variables.terms.map(t, {is_empty} ? [] : ")
