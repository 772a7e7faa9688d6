"""The flags of the containers of a workload: arguments, or environment variables. Pure."""

from collections.abc import Iterator
from itertools import islice

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
    """Yield the values of an option in the order of the arguments; without any, that of its variable.

    A value is in the argument of its option or in the next one.
    """
    values: list[str] = []
    words = iter(args_of(container))
    for word in words:
        if word == name:
            values += islice(words, 1)
        elif word.startswith(f"{name}="):
            values.append(word.removeprefix(f"{name}="))
    if not values and (variable := _variable(container, name)):
        values = [variable]
    yield from values


def option_of(container: JsonObject, name: str) -> str | None:
    """Return the value of an option of a container, the last one if it has several; None if it is not there."""
    return next(reversed([*options(container, name)]), None)


def option(workload: JsonObject, name: str) -> str | None:
    """Return the value of an option of the first container of a workload that has it; None if it is not there."""
    values = (option_of(each, name) for each in containers_of(workload))
    return next((value for value in values if value is not None), None)


def has_flag(workload: JsonObject, name: str) -> bool:
    """Return whether a container of the workload has the flag `name`, among its arguments or by its variable."""
    return any(_has_flag(each, name) for each in containers_of(workload))


def _has_flag(container: JsonObject, name: str) -> bool:
    # The variable of a pair such as --events/--no-events has the name of the first.
    opposite = name.replace("--no-", "--", 1)
    given = [each for each in args_of(container) if each in (name, opposite)]
    if given:
        return given[-1] == name
    if _variable(container, name).lower() in _TRUE:
        return True
    return opposite != name and _variable(container, opposite).lower() in _FALSE


def _variable(container: JsonObject, name: str) -> str:
    """Return the value of the environment variable that `serve` reads for a flag; empty if it is not set here."""
    wanted = VARIABLE_PREFIX + name.removeprefix("--").replace("-", "_").upper()
    return next((str(each.get("value") or "") for each in listed(container, "env") if each.get("name") == wanted), "")
