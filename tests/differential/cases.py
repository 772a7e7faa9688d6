"""Cases: a cluster, a pod, and what kube-scheduler made of it, as YAML files that need no control plane."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.differential.kube_scheduler import Answer
from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.worlds import World
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document, parse

FOLDER = Path(__file__).parent / "cases"
_PARTS = ("namespaces", "workloads", "nodes", "pods", "nominated", "storage")
_WIDTH = 118


@dataclass(frozen=True, slots=True)
class Case:
    """One question and its right answer; `why` says what it is there for.

    `release` is the version of the kube-scheduler that answered.
    """

    why: str
    world: World
    pod: Object
    answer: Answer
    release: str

    def snapshot(self) -> Snapshot:
        """Return the cluster."""
        version = {"serverVersion": {"gitVersion": self.release}}
        return snapshot_from_documents(Document("cluster", obj) for obj in [*self.world.objects, version])

    def write(self, path: Path) -> None:
        """Write it to `path`, the objects of the cluster in few lines each."""
        world, answer = self.world, self.answer
        parts: dict[str, Any] = {
            "why": self.why,
            "release": self.release,
            **{part: [_Dense(obj) for obj in getattr(world, part)] for part in _PARTS if getattr(world, part)},
            "pod": self.pod,
            "answer": {"node": answer.node, "scores": answer.scores} if answer.node else {"message": answer.message},
        }
        text = yaml.dump(
            parts, Dumper=_Dumper, default_flow_style=None, sort_keys=False, width=_WIDTH, allow_unicode=True
        )
        path.write_text(text)


def read(path: Path) -> Case:
    """Return the case in the file `path`."""
    (document,) = parse(path.read_text(), path.name)
    content = document.content
    world = World(*(tuple(content.get(part, ())) for part in _PARTS))
    answer = content["answer"]
    return Case(
        content["why"],
        world,
        content["pod"],
        Answer(answer.get("node"), answer.get("message", ""), answer.get("scores", {})),
        content["release"],
    )


class _Dense(dict[str, Any]):
    """An object that is written as in JSON, without a line for each field."""


class _Dumper(yaml.SafeDumper):
    """Writes every value in place, without anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature is PyYAML's
        return True


_Dumper.add_representer(_Dense, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data, True))
