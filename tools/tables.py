"""Generate the tables of annotations, checks of doctor, changes between releases and workload kinds in docs/."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from placement_doctor.registry import CHECKS
from tools import DOCS
from webhook.kube.release import Change
from webhook.kube.workloads.pod_template_path import PodTemplatePath
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS
from webhook.policy.keys import ANNOTATIONS
from webhook.policy.loader import built_in_policy

Row = tuple[str, ...]


def files() -> Mapping[Path, str]:
    """Return the pages with their tables replaced."""
    keys = built_in_policy().keys
    tables: Mapping[str, tuple[Row, Iterable[Row]]] = {
        "annotations.md": (
            ("annotation", "values", "meaning"),
            ((f"`{keys.of(row)}`", row.values, row.meaning) for row in ANNOTATIONS),
        ),
        "doctor.md": (
            ("check", "finds", "remedy"),
            ((f"`{each.id}`", each.meaning, each.remedy) for each in CHECKS),
        ),
        "scorer.md": (("since", "change"), ((f"1.{each.since}", each.what) for each in Change)),
        "workloads.md": (
            ("kind", "pod templates", "annotations of the pods", "number of pods"),
            _workload_kinds(),
        ),
    }
    return {DOCS / name: with_table((DOCS / name).read_text(), *table) for name, table in tables.items()}


def with_table(page: str, head: Row, rows: Iterable[Row]) -> str:
    """Return the Markdown `page` with `rows` in its table with the header `head`."""
    header = f"{_line(head)}|{'---|' * len(head)}\n"
    start = page.index(header)
    end = f"{page}\n".index("\n\n", start) + 1
    return page[:start] + header + "".join(map(_line, rows)) + page[end:]


def _line(cells: Row) -> str:
    return f"| {' | '.join(cells)} |\n"


def _workload_kinds() -> Iterable[Row]:
    for kind in BUILT_IN_KINDS:
        name = f"`{kind.kind}` of `{kind.group}`" if kind.group else f"`{kind.kind}`"
        if kind.wrapped:
            yield name, f"those of the objects at `{kind.wrapped}`", "theirs", "theirs"
        elif not kind.templates:
            yield name, "none", "in the objects that it names", "not in the object"
        for template in kind.templates:
            number = "a pod on each node" if kind.is_per_node else _number(template)
            yield name, f"`{template.template}`", f"`{_annotations(template)}`", number
            name = ""


def _annotations(template: PodTemplatePath) -> str:
    inner = {
        "PodTemplate": "metadata.annotations",
        "AddedTemplate": "metadata.annotations",
        "RaySubmitter": "metadata.annotations",
        "WorkflowTemplate": "metadata.annotations",
    }
    return template.annotations or f"{template.template}.{inner.get(template.shape, 'annotations')}"


def _number(template: PodTemplatePath) -> str:
    factors = []
    for count in template.counts:
        if not count.path:
            continue
        factor = _leaf(count.path)
        factor = f"({factor} − {count.skipped})" if count.skipped else factor
        least = f", at least {' and '.join(map(_leaf, count.at_least))}" if count.at_least else ""
        least += f" if {_leaf(count.least_if)}" if count.least_if else ""
        most = f", at most {_leaf(count.at_most)}" if count.at_most else ""
        factors.append(f"{factor}{least}{most}")
    return " × ".join(factors) or "1"


def _leaf(path: str) -> str:
    return f"`{path.partition('[')[2].rstrip(']') or path.rpartition('.')[2]}`"
