"""Generate the table of docs/workloads.md from the built-in kinds.

`python -m tests.docs.generators.workload_reference FILE` replaces the table in FILE.
"""

from tests.docs.generators.generated_table import replace_table
from webhook.kube.workloads.pod_template_path import PodTemplatePath
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS

HEAD = "| kind | pod templates | annotations of the pods | number of pods |\n|---|---|---|---|\n"


def table() -> str:
    """Return the table as Markdown, in the order of the built-in kinds."""
    rows = []
    for kind in BUILT_IN_KINDS:
        name = f"`{kind.kind}` of `{kind.group}`" if kind.group else f"`{kind.kind}`"
        if not kind.templates:
            rows.append(f"| {name} | none | in its runtime | not in the object |")
        for template in kind.templates:
            number = "a pod on each node" if kind.is_per_node else _number(template)
            rows.append(f"| {name} | `{template.template}` | `{_annotations(template)}` | {number} |")
            name = ""
    return HEAD + "\n".join(rows) + "\n"


def _annotations(template: PodTemplatePath) -> str:
    inner = {
        "PodTemplate": "metadata.annotations",
        "RaySubmitter": "metadata.annotations",
        "WorkflowTemplate": "metadata.annotations",
        "Component": "annotations",
    }
    return template.annotations or f"{template.template}.{inner[template.shape]}"


def _number(template: PodTemplatePath) -> str:
    factors = []
    for count in template.counts:
        if not count.path:
            continue
        factor = _leaf(count.path)
        factor = f"({factor} − {count.skipped})" if count.skipped else factor
        least = f", at least {_leaf(count.at_least)}" if count.at_least else ""
        most = f", at most {_leaf(count.at_most)}" if count.at_most else ""
        factors.append(f"{factor}{least}{most}")
    return " × ".join(factors) or "1"


def _leaf(path: str) -> str:
    return f"`{path.partition('[')[2].rstrip(']') or path.rpartition('.')[2]}`"


if __name__ == "__main__":
    replace_table(HEAD, table())
