"""Kinds of objects that create pods, beside the built-in ones."""

import re
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo, field_validator

from webhook.kube.names import is_dns_subdomain
from webhook.kube.pod_template_path import Count, PodTemplatePath
from webhook.kube.pod_template_path import WorkloadKind as Kind
from webhook.policy.fields import LabelValue, StrictModel, Values, wrong

_PATH = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.([A-Za-z0-9_-]+|\*)){0,15}")
_PATH_RULE = "must be a dotted path like spec.tasks.*.template, with * for each item of a list or value of a map"
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_RESOURCE = re.compile(r"[a-z][a-z0-9]{0,62}")


def _path(text: str) -> str:
    if not _PATH.fullmatch(text) or text.count("*") > 3:
        raise wrong(_PATH_RULE)
    return text


def _group(text: str) -> str:
    if text and not is_dns_subdomain(text):
        raise wrong("must be an API group like batch.volcano.sh; empty for the core group")
    return text


def _kind(text: str) -> str:
    if not _KIND.fullmatch(text):
        raise wrong("must be a kind like PyTorchJob")
    return text


def _resource(text: str) -> str:
    if not _RESOURCE.fullmatch(text):
        raise wrong("must be the plural of the kind in lower case, like pytorchjobs")
    return text


FieldPath = Annotated[str, AfterValidator(_path)]


class PodTemplateOfKind(StrictModel):
    """A path of pod templates in the objects of a kind."""

    path: FieldPath
    """The path of the PodTemplateSpec. `*` stands for each item of a list or each value of a map."""

    replicas: FieldPath | None = None
    """The path of the number of pods, with the same `*`. One pod if it, or the value there, is absent."""

    role: LabelValue | None = None
    """The name of these pods in messages. Default: the key or the `name` of the item that the last `*` stands for."""

    @field_validator("replicas")
    @classmethod
    def _counts_its_own_template(cls, replicas: str | None, info: ValidationInfo) -> str | None:
        stem = replicas[: replicas.rindex("*") + 1] if replicas and "*" in replicas else ""
        if not str(info.data.get("path", stem)).startswith(stem):
            raise wrong("must have its * where path has them")
        return replicas


class WorkloadKind(StrictModel):
    """A kind that creates pods, or that creates none."""

    group: Annotated[str, AfterValidator(_group)]
    """Its API group, without a version; empty for the core group."""

    kind: Annotated[str, AfterValidator(_kind)]
    """Its kind."""

    resource: Annotated[str, AfterValidator(_resource)]
    """Its plural in lower case, for the rules of the webhook configuration."""

    templates: Values[PodTemplateOfKind]
    """Its pod templates; an empty list for a kind that creates no pods."""

    def facts(self) -> Kind:
        """Return the kind as the built-in ones are described."""
        return Kind(self.group, self.kind, self.resource, tuple(_facts(each) for each in self.templates))


def _facts(template: PodTemplateOfKind) -> PodTemplatePath:
    name = "{name}-{role}-" if template.role or "*" in template.path else "{name}-"
    return PodTemplatePath(template.path, (Count(template.replicas or ""),), template.role or "", name)
