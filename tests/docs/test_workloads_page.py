"""The table of docs/workloads.md is that of the built-in kinds."""

from pathlib import Path

from webhook.kube.workload_kinds import BUILT_IN_KINDS
from webhook.policy.generated_table import with_table
from webhook.policy.workload_reference import HEAD, table

PAGE = Path(__file__).parents[2] / "docs" / "workloads.md"


def test_the_table_has_every_built_in_kind() -> None:
    assert PAGE.read_text() == with_table(PAGE.read_text(), HEAD, table()), "run `make docs`"


def test_each_kind_is_in_the_table_with_its_paths() -> None:
    text = PAGE.read_text()

    assert [kind.kind for kind in BUILT_IN_KINDS if f"| `{kind.kind}`" not in text] == []
