"""The CEL syntax that device selectors use.

It leaves out arithmetic, maps, bytes, optional values, and strings in three quotes. An expression with these does not
parse and is not evaluated.

Source: github.com/google/cel-spec, doc/langdef.md
"""

from functools import cache

from lark import Lark, Token, Tree
from lark.exceptions import LarkError

Node = Tree[Token] | Token

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
    """Return the syntax tree of `expression`; None if it does not match the grammar.

    The parser has its own stack, so nested parentheses cannot exhaust Python's.
    """
    try:
        return _parser().parse(expression)
    except LarkError:
        return None


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", start="expr")
