"""The flags of the containers of a workload: arguments, or environment variables. Pure."""

from collections.abc import Iterator

from webhook.doctor.installation import JsonObject, listed

VARIABLE_PREFIX = "PLACEMENT_WEBHOOK_"
# Source: click/types.py, BoolParamType
_TRUE, _FALSE = ("1", "true", "t", "yes", "y", "on"), ("0", "false", "f", "no", "n", "off")


def containers_of(workload: JsonObject) -> list[JsonObject]:
    """Return the containers of a workload's pods."""
    return listed(workload, "spec", "template", "spec", "containers")


def args_of(container: JsonObject) -> list[str]:
    """Return the arguments of a container."""
    found = container.get("args")
    return [str(each) for each in found] if isinstance(found, list) else []


def options(container: JsonObject, name: str) -> Iterator[str]:
    """Yield the values of an option, which is in one argument or in two; without any, that of its variable."""
    args = args_of(container)
    values = [each.removeprefix(f"{name}=") for each in args if each.startswith(f"{name}=")]
    values += [args[index + 1] for index, each in enumerate(args[:-1]) if each == name]
    if not values and (variable := _variable(container, name)):
        values = [variable]
    yield from values


def option(workload: JsonObject, name: str) -> str | None:
    """Return the first value of an option of a workload; None if it is not there."""
    return next((value for each in containers_of(workload) for value in options(each, name)), None)


def has_flag(workload: JsonObject, name: str) -> bool:
    """Return whether a container of the workload has the flag `name`, among its arguments or by its variable."""
    return any(_has_flag(each, name) for each in containers_of(workload))


def _has_flag(container: JsonObject, name: str) -> bool:
    if name in args_of(container) or _variable(container, name).lower() in _TRUE:
        return True
    # The variable of a pair such as --events/--no-events has the name of the first.
    opposite = name.replace("--no-", "--", 1)
    return opposite not in (name, *args_of(container)) and _variable(container, opposite).lower() in _FALSE


def _variable(container: JsonObject, name: str) -> str:
    """Return the value of the environment variable that `serve` reads for a flag; empty if it is not set here."""
    wanted = VARIABLE_PREFIX + name.removeprefix("--").replace("-", "_").upper()
    return next((str(each.get("value") or "") for each in listed(container, "env") if each.get("name") == wanted), "")
