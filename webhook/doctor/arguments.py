"""The arguments of the containers of a workload. Pure."""

from collections.abc import Iterator

from webhook.doctor.installation import JsonObject, listed


def containers_of(workload: JsonObject) -> list[JsonObject]:
    """Return the containers of a workload's pods."""
    return listed(workload, "spec", "template", "spec", "containers")


def args_of(container: JsonObject) -> list[str]:
    """Return the arguments of a container."""
    found = container.get("args")
    return [str(each) for each in found] if isinstance(found, list) else []


def options(container: JsonObject, name: str) -> Iterator[str]:
    """Yield the values of an option, which is in one argument or in two."""
    args = args_of(container)
    for index, each in enumerate(args):
        if each.startswith(f"{name}="):
            yield each.removeprefix(f"{name}=")
        elif each == name and index + 1 < len(args):
            yield args[index + 1]


def option(workload: JsonObject, name: str) -> str | None:
    """Return the first value of an option of a workload; None if it is not there."""
    return next((value for each in containers_of(workload) for value in options(each, name)), None)


def has_flag(workload: JsonObject, name: str) -> bool:
    """Return whether a container of the workload has the flag among its arguments."""
    return any(name in args_of(each) for each in containers_of(workload))
