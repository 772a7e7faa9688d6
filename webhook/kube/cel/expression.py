"""CEL expressions of device selectors, without loops, evaluated at a bounded cost.

An expression has the value that kube-scheduler computes, or no value. It has no value if it uses an unsupported feature
(macros over lists, optional values, arithmetic, …), or if kube-scheduler gets an error (a missing key, types that do
not match).
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from webhook.kube.cel.functions import FUNCTIONS, METHODS
from webhook.kube.cel.values import UndecidedError, boolean, comparable, contains, equal, has, number, value_at

if TYPE_CHECKING:
    from webhook.kube.cel.syntax import Node

Scope = Mapping[str, Any]
Evaluate = Callable[[Scope], Any]

# Source: k8s.io/api/resource/v1/types.go, CELSelectorExpressionMaxLength
_LONGEST = 10 * 1024
# Users control expressions, and a compiled one takes up to 150 times the memory of its text, so the cache is bounded
# in bytes: it holds many short expressions or a few long ones.
_LONGEST_SHORT = 512
_MOST_SHORT = 256
_MOST_LONG = 8
_DEEPEST = 60
_LARGEST_INTEGER = 2**63 - 1
# A match of a pattern can take as long as this number of other steps.
_STEPS_OF_MATCHES = 300
_FAILED = object()
_CONSTANTS = {"true": True, "false": False, "null": None}
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ESCAPES = {"\\": "\\", '"': '"', "'": "'", "`": "`", "?": "?", "n": "\n", "r": "\r", "t": "\t"}


class Expression:
    """A compiled expression. `size` is the maximum number of steps; each is cheap."""

    __slots__ = ("_evaluate", "size")

    def __init__(self, text: str) -> None:
        # Imported here, so that a cluster without devices does not load the parser.
        from webhook.kube.cel.syntax import parse

        tree = parse(text) if len(text) <= _LONGEST else None
        compiler = _Compiler()
        self._evaluate: Evaluate = _nothing if tree is None else compiler.compiled(tree)
        self.size = compiler.size

    def holds(self, scope: Scope) -> bool | None:
        """Return the value of the expression for these variables, or None if it is unknown or not a boolean."""
        try:
            result = self._evaluate(scope)
        except UndecidedError:
            return None
        return result if isinstance(result, bool) else None


_short = lru_cache(maxsize=_MOST_SHORT)(Expression)
_long = lru_cache(maxsize=_MOST_LONG)(Expression)


def compiled(text: str) -> Expression:
    """Return the compiled expression `text`, from the cache if it was used recently."""
    if len(text) > _LONGEST:
        return Expression(text)
    return _short(text) if len(text) <= _LONGEST_SHORT else _long(text)


def _nothing(*_: Any) -> Any:
    raise UndecidedError


class _Compiler:
    """Compiles a syntax tree to functions. An unknown part fails only when it is evaluated."""

    def __init__(self) -> None:
        self.size = 0

    def compiled(self, node: "Node | None", depth: int = 0) -> Evaluate:
        self.size += 1
        if node is None or isinstance(node, str) or depth > _DEEPEST:
            return _nothing
        if node.data in _LITERALS:
            return _LITERALS[node.data](str(node.children[0]))
        make: Callable[[Sequence[Any], int], Evaluate] = getattr(self, f"_{node.data}")
        return make(node.children, depth + 1)

    def _all(self, nodes: Sequence[Any], depth: int) -> list[Evaluate]:
        return [self.compiled(node, depth) for node in nodes if node is not None]

    def _or(self, nodes: Sequence[Any], depth: int) -> Evaluate:
        return partial(_joined, self._all(nodes, depth), True)

    def _and(self, nodes: Sequence[Any], depth: int) -> Evaluate:
        return partial(_joined, self._all(nodes, depth), False)

    def _conditional(self, nodes: Sequence[Any], depth: int) -> Evaluate:
        condition, then, otherwise = self._all(nodes, depth)
        return lambda scope: then(scope) if boolean(condition(scope)) else otherwise(scope)

    def _negation(self, nodes: Sequence[Any], depth: int) -> Evaluate:
        (inner,) = self._all(nodes, depth)
        return lambda scope: not boolean(inner(scope))

    def _minus(self, nodes: Sequence[Any], depth: int) -> Evaluate:
        (inner,) = self._all(nodes, depth)
        return lambda scope: -number(inner(scope))

    def _relation(self, nodes: Sequence[Any], depth: int) -> Evaluate:
        left, right = self.compiled(nodes[0], depth), self.compiled(nodes[2], depth)
        sign = str(nodes[1])
        if sign in ("==", "!="):
            return lambda scope: equal(left(scope), right(scope)) is (sign == "==")
        holds = _ORDERS[sign]
        return lambda scope: holds(*comparable(left(scope), right(scope)))

    def _contained(self, nodes: Sequence[Any], depth: int) -> Evaluate:
        item, container = self._all(nodes, depth)
        return lambda scope: contains(container(scope), item(scope))

    def _select(self, nodes: Sequence[Any], depth: int) -> Evaluate:
        target, name = self.compiled(nodes[0], depth), str(nodes[1])
        return lambda scope: value_at(target(scope), name)

    def _index(self, nodes: Sequence[Any], depth: int) -> Evaluate:
        target, key = self._all(nodes, depth)
        return lambda scope: value_at(target(scope), key(scope))

    def _method(self, nodes: Sequence[Any], depth: int) -> Evaluate:
        target, name, arguments = nodes[0], str(nodes[1]), [each for each in nodes[2].children if each is not None]
        if name == "bind" and _variable_name(target) == "cel" and len(arguments) == 3:
            return self._bind(arguments, depth)
        if name == "matches":
            self.size += _STEPS_OF_MATCHES
        call = METHODS.get((name, len(arguments)), _nothing)
        return partial(_called, call, self._all([target, *arguments], depth))

    def _bind(self, arguments: Sequence[Any], depth: int) -> Evaluate:
        name = _variable_name(arguments[0])
        value, body = self._all(arguments[1:], depth)
        return partial(_bound, name, value, body)

    def _function(self, nodes: Sequence[Any], depth: int) -> Evaluate:
        name, arguments = str(nodes[0]), [each for each in nodes[1].children if each is not None]
        if name == "has" and len(arguments) == 1 and getattr(arguments[0], "data", "") == "select":
            target, key = self.compiled(arguments[0].children[0], depth), str(arguments[0].children[1])
            return lambda scope: has(target(scope), key)
        return partial(_called, FUNCTIONS.get((name, len(arguments)), _nothing), self._all(arguments, depth))

    def _items(self, nodes: Sequence[Any], depth: int) -> Evaluate:
        items = self._all(nodes[0].children, depth)
        return lambda scope: [each(scope) for each in items]


def _constant(value: Any) -> Evaluate:
    return lambda _: value


def _integer(text: str) -> Evaluate:
    digits = text.rstrip("uU")
    value = int(digits, 16) if digits.startswith("0x") else int(digits)
    return _constant(value) if value <= _LARGEST_INTEGER else _nothing


def _text(text: str) -> Evaluate:
    value = _unescaped(text[1:-1])
    return _nothing if value is None else _constant(value)


def _variable_name(node: Any) -> str:
    return str(node.children[0]) if getattr(node, "data", "") == "variable" else ""


def _looked_up(name: str, scope: Scope) -> Any:
    if name not in scope:
        raise UndecidedError
    value = scope[name]
    if value is _FAILED:
        raise UndecidedError
    return value


def _bound(name: str, value: Evaluate, body: Evaluate, scope: Scope) -> Any:
    """Evaluate `body` with a variable. If the variable has no value, only a use of it fails."""
    try:
        found = value(scope)
    except UndecidedError:
        found = _FAILED
    return body({**scope, name: found})


def _joined(parts: Sequence[Evaluate], decisive: bool, scope: Scope) -> bool:
    """Evaluate `||` or `&&`.

    If a part has the `decisive` value, this is the result, even if another part has no value.
    """
    undecided = False
    for part in parts:
        try:
            value = boolean(part(scope))
        except UndecidedError:
            undecided = True
            continue
        if value is decisive:
            return decisive
    if undecided:
        raise UndecidedError
    return not decisive


def _called(call: Callable[..., Any], arguments: Sequence[Evaluate], scope: Scope) -> Any:
    return call(*[each(scope) for each in arguments])


def _unescaped(text: str) -> str | None:
    pieces, rest = [], text
    while "\\" in rest:
        before, _, rest = rest.partition("\\")
        if rest[:1] not in _ESCAPES:
            return None
        pieces += [before, _ESCAPES[rest[0]]]
        rest = rest[1:]
    return "".join([*pieces, rest])


_LITERALS: Mapping[str, Callable[[str], Evaluate]] = {
    "integer": _integer,
    "decimal": lambda text: _constant(float(text)),
    "text": _text,
    "raw_text": lambda text: _constant(text[2:-1]),
    "variable": lambda name: _constant(_CONSTANTS[name]) if name in _CONSTANTS else partial(_looked_up, name),
}
