"""The table of docs/workloads.md is that of the built-in kinds."""

from pathlib import Path

from tests.docs.generators.generated_table import with_table
from tests.docs.generators.workload_reference import HEAD, table
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS, PATCHED_TEMPLATES

PAGE = Path(__file__).parents[2] / "docs" / "workloads.md"


def test_the_table_has_every_built_in_kind() -> None:
    assert PAGE.read_text() == with_table(PAGE.read_text(), HEAD, table()), "run `make docs`"


def test_each_kind_is_in_the_table_with_its_paths() -> None:
    text = PAGE.read_text()

    assert [kind.kind for kind in BUILT_IN_KINDS if f"| `{kind.kind}`" not in text] == []


def test_each_kind_with_patched_templates_is_named_with_when_it_is_patched() -> None:
    _, _, section = PAGE.read_text().partition("## Templates")
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    always, on_creation = (
        {name.strip() for name in row.split("|")[1].split(",")} for row in rows if "when it is created" in row
    )

    for (group, kind), operations in PATCHED_TEMPLATES.items():
        name = "Volcano Job" if group == "batch.volcano.sh" else kind
        assert name in (always if "UPDATE" in operations else on_creation), name
    assert len(always | on_creation) == len(PATCHED_TEMPLATES)
