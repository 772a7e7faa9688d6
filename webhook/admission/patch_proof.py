"""Prove a patch before it is used: `jsonpatch` applies it, and the result is compared with the pod that was judged.

The webhook writes its operations itself and applies them with code of its own, since that is much cheaper. `jsonpatch`
is an implementation by others, as the API server's is.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import orjson

from webhook.admission.evaluation import inject
from webhook.admission.mutated_pod import Injection
from webhook.admission.pod_content import PodContent
from webhook.documents.documents import JsonObject
from webhook.documents.text import cut, printable
from webhook.kube.api.independent_patch import PatchError, independently_patched
from webhook.kube.api.json_patch import patched
from webhook.mutation.invariants import Steps, lost_values, overruled_values
from webhook.policy.policy import Policy

_MOST_PLACES = 3
_PLACE_CHARACTERS = 120


class UnprovenPatchError(Exception):
    """A patch is wrong. The message names places, not values: an environment can have secrets."""


def prove_pod_patch(content: PodContent, operations: Sequence[Mapping[str, Any]], policy: Policy) -> None:
    """Check that `operations` turn the pod of `content` into the one that `policy` makes of it, without any cache.

    Raises:
        UnprovenPatchError: they do not, or the user loses a value.
        TooDeepError: the pod is nested deeper than any pod.
    """
    after = apply(content.pod, operations)
    result = inject(content, policy)
    judged = patched(content.pod, result.operations) if isinstance(result, Injection) else content.pod
    check_equal(after, judged)
    check_kept(overruled_values(content.pod, after, policy))


def apply(document: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> JsonObject:
    """Return a copy of `document` after `operations`, as `jsonpatch` applies them.

    Raises:
        UnprovenPatchError: they cannot be applied.
        TooDeepError: the document is nested deeper than any pod.
    """
    try:
        return independently_patched(document, operations)
    except PatchError as error:
        raise UnprovenPatchError(str(error)) from None


def check_equal(after: Mapping[str, Any], judged: Mapping[str, Any]) -> None:
    """Check that a patched object equals the one that was judged.

    Raises:
        UnprovenPatchError: it does not.
    """
    if _canonical(after) != _canonical(judged):
        places = islice({**dict.fromkeys(lost_values(judged, after)), **dict.fromkeys(lost_values(after, judged))}, 99)
        raise UnprovenPatchError(f"the patch does not give what was judged: {_listed(places) or 'it differs'}")


def check_kept(overruled: Iterable[Steps]) -> None:
    """Check that the user loses no value.

    Raises:
        UnprovenPatchError: there are places in `overruled`.
    """
    if places := _listed(overruled):
        raise UnprovenPatchError(f"the patch removes or replaces what the user wrote: {places}")


def _canonical(value: Mapping[str, Any]) -> bytes:
    # Python's == does not tell 1, 1.0 and True apart.
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _listed(places: Iterable[Steps]) -> str:
    some = [cut(printable("/".join(("", *place))), _PLACE_CHARACTERS) for place in islice(places, _MOST_PLACES + 1)]
    return ", ".join([*some[:_MOST_PLACES], *(["…"] if len(some) > _MOST_PLACES else [])])
