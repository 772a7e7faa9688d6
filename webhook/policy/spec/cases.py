"""Test cases of a policy: a pod, and the expected result."""

from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, Field, model_validator

from webhook.policy.spec.field_types import LabelValue, StrictModel, Text, Values, wrong

_MOST_BYTES = 64 * 1024


def _small(content: dict[str, Any]) -> dict[str, Any]:
    try:
        size_bytes = len(orjson.dumps(content))
    except (TypeError, orjson.JSONEncodeError) as error:
        raise wrong("must be JSON, not nested deeper than any pod") from error
    if size_bytes > _MOST_BYTES:
        raise wrong(f"must have at most {_MOST_BYTES} bytes of JSON")
    return content


Manifest = Annotated[dict[str, Any], AfterValidator(_small)]


class Expectation(StrictModel):
    """The expected result. A field that is absent is not compared."""

    outcome: Literal["Patched", "Unchanged", "Denied", "Bypassed"]
    """The outcome of the admission."""

    rules: Values[Text] | None = None
    """The names of the rules that edit the pod, in any order."""

    contains: Manifest | None = None
    """A part of the resulting pod: its maps hold at least these keys, and its lists at least these items."""

    warnings: Values[Text] | None = None
    """Texts, each of them a part of a warning. An empty list: there is no warning."""

    message: Text | None = None
    """A part of the message of a denied pod, or of the reason for a bypassed one."""


class PolicyTest(StrictModel):
    """A test case. It states what the policy does where it is enforced, with any `mode` and `canaryPercent`.

    The pod is `pod`, or has the `annotations`, `labels` and `requests` of the case. There is no cluster: the placement
    check has the verdict Unknown.
    """

    name: Text
    """The name of the case."""

    pod: Manifest | None = None
    """A pod, or a part of one. Without containers it gets one; without a name, `test`."""

    annotations: dict[str, str] = Field(default={})
    """Annotations of the pod."""

    labels: dict[str, str] = Field(default={})
    """Labels of the pod."""

    requests: dict[str, int | str] = Field(default={})
    """Requests and limits of the pod's only container, such as `nvidia.com/gpu: 8`."""

    namespace: LabelValue = "default"
    """The namespace of the pod."""

    namespace_annotations: dict[str, str] = Field(default={})
    """Annotations of that namespace: the defaults of its pods."""

    user: str = ""
    """The user who creates the pod."""

    groups: Values[Text] = ()
    """The groups of that user."""

    expect: Expectation
    """The expected result."""

    @model_validator(mode="after")
    def _has_one_pod(self) -> "PolicyTest":
        if self.pod is not None and (self.annotations or self.labels or self.requests):
            raise wrong("must have pod, or annotations, labels and requests, not both")
        return self

    def manifest(self) -> dict[str, Any]:
        """Return the whole pod."""
        limits = {"limits": self.requests, "requests": self.requests} if self.requests else {}
        pod = self.pod or {}
        named = {"name": "test", "namespace": self.namespace, "annotations": self.annotations, "labels": self.labels}
        spec = {"containers": [{"name": "main", "image": "test", "resources": limits}]}
        given = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}, **pod}
        return {**given, "metadata": _over(named, given["metadata"]), "spec": _over(spec, given["spec"])}


def _over(defaults: dict[str, Any], given: Any) -> Any:
    """Return `given` merged over `defaults`.

    A value of a wrong type is returned unchanged, so that validation rejects it.
    """
    return {**defaults, **given} if isinstance(given, dict) else given
