"""Read kubeconfig files as kubectl does: `--kubeconfig`, or else the files of $KUBECONFIG, or else ~/.kube/config."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from webhook.documents.documents import JsonObject, field, parse
from webhook.documents.field import InvalidInput, invalid, required, unsupported

FLAG, VARIABLE, DEFAULT = "--kubeconfig", "$KUBECONFIG", "~/.kube/config"

_LISTS = ("clusters", "contexts", "users")
_FILES = {"clusters": ("certificate-authority",), "users": ("client-certificate", "client-key", "tokenFile")}
_UNUSABLE = "no cluster can be read from it"


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The merged `content` of the files, the name of the `context` to use, and the URL of its API `server`."""

    content: JsonObject
    context: str
    server: str


def read_kubeconfig(
    path: Path | None = None, context: str | None = None, environment: Mapping[str, str] = os.environ
) -> Kubeconfig:
    """Return the kubeconfig in `path`, or the merged files that kubectl reads without --kubeconfig.

    The first file that sets the current context or defines a name wins; files of $KUBECONFIG that do not exist are
    skipped. `context` replaces the current context. File names in a kubeconfig are relative to its folder.

    Raises:
        InvalidInput: a file cannot be read or is no kubeconfig, or there is no such context.

    Source: k8s.io/client-go/tools/clientcmd/loader.go, ClientConfigLoadingRules.Load
    """
    place, paths = _paths(path, environment)
    shown = os.pathsep.join(map(str, paths))
    merged = _read_all(path, place, paths)
    name = context or merged["current-context"]
    known = _by_name(merged["contexts"])
    if not name:
        remedy = f"give one of {', '.join(known)}" if known else "it has none to choose"
        detail = f"the kubeconfig {shown} sets no current context; {remedy}"
        raise InvalidInput([required("--context", detail)])
    if name not in known:
        where = "--context" if context else f"{place}: current-context"
        raise InvalidInput([unsupported(where, name, known)])
    cluster = field(known[name], "context", "cluster")
    server = field(_by_name(merged["clusters"]).get(str(cluster), {}), "cluster", "server")
    if not server or not isinstance(server, str):
        detail = f"{_UNUSABLE}: context {name} names cluster {cluster}, which has no server"
        raise InvalidInput([invalid(place, shown, detail)])
    return Kubeconfig(merged, name, server.rstrip("/"))


def namespace_of_context(path: Path | None = None, context: str | None = None) -> str:
    """Return the namespace of the context that `read_kubeconfig` returns, or an empty string if there is none."""
    try:
        found = read_kubeconfig(path, context)
    except InvalidInput:
        return ""
    namespace = field(_by_name(found.content["contexts"])[found.context], "context", "namespace")
    return namespace if isinstance(namespace, str) else ""


def contexts(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the names of the contexts in the kubeconfig that `read_kubeconfig` reads.

    Raises:
        InvalidInput: a file cannot be read or is no kubeconfig.
    """
    return list(_by_name(_read_all(path, *_paths(path, environment))["contexts"]))


def _read_all(path: Path | None, place: str, paths: Sequence[Path]) -> JsonObject:
    contents = [content for each in paths if (content := _read(each, place, is_optional=path is None)) is not None]
    if not contents:
        shown = os.pathsep.join(map(str, paths))
        raise InvalidInput([invalid(place, shown, f"{_UNUSABLE}: no such file; give --kubeconfig FILE")])
    return _merged(contents)


def _paths(path: Path | None, environment: Mapping[str, str]) -> tuple[str, list[Path]]:
    """Return the name of the source of the kubeconfig, for errors, and its files."""
    if path is not None:
        return FLAG, [path]
    if listed := [each for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each]:
        return VARIABLE, [Path(each) for each in dict.fromkeys(listed)]
    return DEFAULT, [Path(environment.get("HOME") or Path.home()) / ".kube" / "config"]


def _read(path: Path, place: str, *, is_optional: bool) -> JsonObject | None:
    try:
        text = path.read_bytes()
    except OSError as error:
        if is_optional and isinstance(error, FileNotFoundError):
            return None
        raise InvalidInput([invalid(place, str(path), f"{_UNUSABLE}: {error.strerror or error}")]) from error
    try:
        documents = parse(text, f"{place}: {path}")
    except InvalidInput as error:
        raise InvalidInput(replace(each, detail=f"{_UNUSABLE}: {each.detail}") for each in error.errors) from error
    if not documents:
        return {}
    content, errors = documents[0].content, []
    for key in _LISTS:
        items = content.get(key) or []
        if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
            detail = f"{_UNUSABLE}: must be a list of objects with a name"
            errors.append(invalid(f"{place}: {path}: {key}", items, detail))
    if errors:
        raise InvalidInput(errors)
    return _with_absolute_paths(content, path.absolute().parent)


def _with_absolute_paths(content: JsonObject, folder: Path) -> JsonObject:
    for key, names in _FILES.items():
        for item in content.get(key) or []:
            inner = item.get(key.removesuffix("s"))
            for name in names if isinstance(inner, dict) else ():
                if isinstance(inner.get(name), str) and inner[name]:
                    inner[name] = str(folder / inner[name])
            command = field(item, "user", "exec", "command")
            # A command without a slash is searched in $PATH.
            if isinstance(command, str) and "/" in command:
                item["user"]["exec"]["command"] = str(folder / command)
    return content


def _merged(contents: Iterable[JsonObject]) -> JsonObject:
    merged: JsonObject = {"apiVersion": "v1", "kind": "Config", "current-context": ""}
    named: dict[str, dict[str, JsonObject]] = {key: {} for key in _LISTS}
    for content in contents:
        merged["current-context"] = merged["current-context"] or content.get("current-context") or ""
        for key, known in named.items():
            for name, item in _by_name(content.get(key) or []).items():
                known.setdefault(name, item)
    return merged | {key: list(items.values()) for key, items in named.items()}


def _by_name(items: Iterable[Any]) -> dict[str, JsonObject]:
    return {str(item.get("name")): item for item in items}
