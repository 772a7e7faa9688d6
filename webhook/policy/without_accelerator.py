"""Settings for pods that request no accelerator."""

from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from webhook.policy.fields import StrictModel, wrong

Handling = Literal["inject", "warn", "leave"]


class WithoutAccelerator(StrictModel):
    """The handling of pods that request no accelerator.

    A pod with `resourceClaims` counts as one that requests an accelerator, because a claim can be for one.
    """

    pod_annotations: Handling = "warn"
    """Pods that set the workload type themselves. `inject`: inject as for every other pod. `warn`: the same, and warn a
    pod that asks for a card with `gpu-product` or another `gpu-` annotation. `leave`: inject nothing, and warn."""

    namespace_defaults: Handling = "leave"
    """The annotations of the pod's namespace. `inject`: they apply to every pod. `warn`: the same, and warn the pod.
    `leave`: they apply only to pods that request an accelerator. `inject` and `placement-check` always apply."""


def _both(value: Any) -> Any:
    if isinstance(value, str) and value in get_args(Handling):
        return {"podAnnotations": value, "namespaceDefaults": value}
    if not isinstance(value, dict | WithoutAccelerator):
        raise wrong("must be inject, warn or leave, or a mapping with podAnnotations and namespaceDefaults")
    return value


class _WordInSchema:
    @staticmethod
    def __get_pydantic_json_schema__(schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"type": "string", "enum": list(get_args(Handling))}]}


# One word sets both fields.
WithoutAcceleratorField = Annotated[WithoutAccelerator, BeforeValidator(_both), _WordInSchema]
