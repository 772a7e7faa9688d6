"""The CEL syntax that device selectors use.

It leaves out arithmetic, maps, bytes, optional values, and strings in three quotes. An expression with these does not
parse and is not evaluated.

Source: github.com/google/cel-spec, doc/langdef.md
"""

from functools import cache
from itertools import islice

from lark import Lark, Token, Tree
from lark.exceptions import LarkError

Node = Tree[Token] | Token

# Users control expressions, and a parse cannot be interrupted: a token takes 10 µs. A long real one has some hundred.
MOST_TOKENS = 1_000

_GRAMMAR = r"""
?expr: or | or "?" or ":" expr -> conditional
?or: and ("||" and)*
?and: relation ("&&" relation)*
?relation: unary | unary RELATION unary | unary "in" unary -> contained
?unary: member | "!" unary -> negation | "-" unary -> minus
?member: primary
    | member "." IDENT -> select
    | member "." IDENT "(" arguments ")" -> method
    | member "[" expr "]" -> index
?primary: "(" expr ")"
    | IDENT -> variable
    | IDENT "(" arguments ")" -> function
    | "[" arguments "]" -> items
    | INT -> integer
    | FLOAT -> decimal
    | STRING -> text
    | RAW_STRING -> raw_text
arguments: [expr ("," expr)*]

RELATION: "==" | "!=" | "<=" | ">=" | "<" | ">"
IDENT: /[_a-zA-Z][_a-zA-Z0-9]*/
FLOAT.2: /[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+/
INT: /0x[0-9a-fA-F]{1,16}[uU]?|[0-9]{1,20}[uU]?/
STRING: /"(?!"")([^"\\\n\r]|\\.)*"|'(?!'')([^'\\\n\r]|\\.)*'/
RAW_STRING.2: /[rR]"(?!"")[^"\n\r]*"|[rR]'(?!'')[^'\n\r]*'/
%ignore /[ \t\n\r\f]+/
%ignore /\/\/[^\n]*/
"""


def parse(expression: str) -> Node | None:
    """Return the syntax tree of `expression`, or None if it does not match the grammar or has more than MOST_TOKENS.

    The parser has its own stack, so nested parentheses cannot exhaust Python's.
    """
    try:
        parser = _parser().parse_interactive(expression)
        if next(islice(parser.iter_parse(), MOST_TOKENS, None), None) is not None:
            return None
        tree: Node = parser.feed_eof()  # type: ignore[no-untyped-call] # its author left it without types
    except LarkError:
        return None
    return tree


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", start="expr")
