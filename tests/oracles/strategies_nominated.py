"""Random nominations: of pods that wait beside the one that is asked about, and of that one itself."""

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.oracles.strategies import Draw

Object = dict[str, Any]

_priorities = st.sampled_from((None, None, -5, 0, 10))


@st.composite
def nominations(draw: Draw, pods: list[Object]) -> list[Object]:
    """`pods`, which are bound, about half of them only nominated to their node."""
    found = deepcopy(pods)
    for pod in found:
        if draw(st.booleans()):
            pod["status"] = {
                "phase": draw(st.sampled_from(("Pending", "Pending", "Pending", "Failed"))),
                "nominatedNodeName": pod["spec"].pop("nodeName"),
            }
            pod["spec"] |= _without_nulls(
                priority=draw(_priorities), schedulerName=draw(st.sampled_from((None, None, None, "other")))
            )
    return found


@st.composite
def nominees(draw: Draw, name: str, pod: Object) -> Object:
    """`pod`, which waits, under that name, with a priority, and sometimes nominated to a node itself."""
    found: Object = deepcopy(pod)
    found["metadata"]["name"] = name
    found["spec"] |= _without_nulls(priority=draw(_priorities))
    node = draw(st.sampled_from((None, None, "node-0", "node-1", "nowhere")))
    found["status"] = _without_nulls(phase="Pending", nominatedNodeName=node)
    return found


def _without_nulls(**fields: Any) -> Object:
    return {name: value for name, value in fields.items() if value is not None}
