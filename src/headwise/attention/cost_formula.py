"""Cost formulas that people read and the program computes: `4 · n · h · (left + right) · d`.

A kernel writes its cost once, as text (`AttentionKind.cost`, `AttentionKind.memory`). The names in
the text are numbers of the kernel's settings and

    n    length of the row (queries and keys)
    h    heads
    d    width of a head

The text may have numbers, names, `+ - · /`, `²`, parentheses and `min(a, b)`. It is parsed, never
executed.

Tested against: formulas worked by hand; for every kernel, torch's count of operations.
"""

import ast
from collections.abc import Mapping
from operator import add, mul, pow, sub, truediv

Number = int | float
_OPERATORS = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv, ast.Pow: pow}


def compute_formula(formula: str, values: Mapping[str, Number]) -> Number:
    """The value of a formula; an unknown name or sign is an error of the kernel that wrote it."""
    plain = formula.replace("·", "*").replace("²", "**2")
    try:
        return _compute(ast.parse(plain.strip(), mode="eval").body, values)
    except (SyntaxError, KeyError, TypeError) as error:
        raise ValueError(f"{formula!r} is not a cost formula: {error!r}") from error


def _compute(node: ast.expr, values: Mapping[str, Number]) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return values[name]
        case ast.BinOp(left=left, op=operator, right=right):
            return _OPERATORS[type(operator)](_compute(left, values), _compute(right, values))
        case ast.Call(func=ast.Name(id="min"), args=[first, second], keywords=[]):
            return min(_compute(first, values), _compute(second, values))
    raise TypeError(ast.unparse(node))
