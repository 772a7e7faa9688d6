"""Apply a patch with the library `jsonpatch`, independently of `webhook.kube.api.json_patch`."""

from collections.abc import Mapping, Sequence
from typing import Any

import jsonpatch
import orjson

from webhook.documents.documents import JsonObject


class PatchError(Exception):
    """A patch cannot be applied. The message contains no part of the document."""


class TooDeepError(Exception):
    """The document is nested too deeply."""


def independently_patched(document: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> JsonObject:
    """Return a copy of `document` after `operations` (RFC 6902).

    Raises:
        PatchError: the operations cannot be applied.
        TooDeepError: the document is nested deeper than any pod.
    """
    try:
        # Both are copied: `jsonpatch` changes the document, and would put values of the operations into it. This is
        # ten times as fast as copy.deepcopy, and its limit of the depth is below that of the interpreter.
        copy, copied = orjson.loads(orjson.dumps([document, operations]))
    except orjson.JSONEncodeError as error:
        raise TooDeepError from error
    try:
        result: JsonObject = jsonpatch.JsonPatch(copied).apply(copy, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, ValueError) as error:
        raise PatchError(f"the patch cannot be applied: {type(error).__name__}") from None
    return result
