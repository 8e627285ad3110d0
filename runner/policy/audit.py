"""What executed Python looks like, from its syntax tree alone: comments, strings and names of files say nothing.

Advisory: code that looks like training may never run, and code that trains need not look like it.
"""

from __future__ import annotations

import ast

LOOP_TRAINS = "a loop calls backward() and step()"
KERAS_FITS = "a model is compiled with an optimizer and fitted"
TRAINER_TRAINS = "a Trainer is told to train"


def training_signs(code: str) -> tuple[str, ...]:
    """Shapes of training in a program; none where it is no Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    signs = []
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    if any({"backward", "step"} <= _methods(loop) for loop in loops):
        signs.append(LOOP_TRAINS)
    if "fit" in _methods(tree) and _compiles_with_optimizer(tree):
        signs.append(KERAS_FITS)
    if "train" in _methods(tree) and any(_called(call).endswith("Trainer") for call in _calls(tree)):
        signs.append(TRAINER_TRAINS)
    return tuple(signs)


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _methods(tree: ast.AST) -> set[str]:
    """Names of the methods that are called somewhere below."""
    return {call.func.attr for call in _calls(tree) if isinstance(call.func, ast.Attribute)}


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _compiles_with_optimizer(tree: ast.AST) -> bool:
    return any(
        _called(call) == "compile" and any(word.arg == "optimizer" for word in call.keywords)
        for call in _calls(tree)
    )
