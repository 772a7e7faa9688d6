"""The pod of a template, as its shape describes it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Shaped:
    """The labels, annotations and spec of the pods of a template, as written in the object.

    The paths are the paths of the annotations and of the pod's spec in the object. `caveat` is a property of the pod
    that the object does not define. `name` is the pattern of pod names if it differs from that of other templates.
    `path` is the path of the template if it is in another field.
    """

    labels: Any
    annotations: Any
    spec: Any
    annotations_path: str
    spec_path: str
    caveat: str = ""
    name: str = ""
    path: str = ""
