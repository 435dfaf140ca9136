"""Conversion of a stage to a Python function: signature and docstring from its fields, checked arguments."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING
from typing import Any, ParamSpec, TypeVar, cast

from mmgen.commands._base import Stage
from mmgen.commands._fields import MemberSettings, StageField, fields_of
from mmgen.settings.arguments import check_arguments, unknown_argument_error
from mmgen.settings.plugins import to_kebab_case
from mmgen.settings.registry import insert_member_names

__all__ = ["function"]

P = ParamSpec("P")
R = TypeVar("R")


def function(stage: Callable[P, Stage[R]]) -> Callable[P, R]:
    """Convert a stage to a Python function, with its fields as arguments and the result of ``run`` as value."""
    return cast("Callable[P, R]", _function_of(cast("type[Stage[Any]]", stage)))


def _function_of(stage: type[Stage[Any]]) -> Callable[..., Any]:
    further = next((field.name for field in fields_of(stage) if field.mark(MemberSettings)), "")
    known = {field.name for field in fields_of(stage)} - {further}

    def call(*arguments: Any, **given: Any) -> Any:
        if not further:
            return stage(*arguments, **given).run()
        settings = {name: given.pop(name) for name in [*given] if name not in known}
        given[further] = settings
        made: Any = stage(*arguments, **given)
        for name in settings:
            if name not in (names := made.settings_names()):
                raise unknown_argument_error(call, name, names)
        return made.run()

    name = to_kebab_case(stage.__name__).replace("-", "_")
    call.__name__ = call.__qualname__ = name
    call.__module__ = "mmgen"
    call.__doc__ = _docstring(stage)
    call.__annotations__ = {field.name: field.hint for field in fields_of(stage)}
    order = [field.name for field in fields_of(stage)]
    listed = sorted(inspect.signature(stage).parameters.values(), key=lambda one: (one.kind, order.index(one.name)))
    if further:
        listed = [one for one in listed if one.name != further]
        listed.append(inspect.Parameter(further, inspect.Parameter.VAR_KEYWORD))
    call.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]  # read by inspect
    return check_arguments(call)


def _docstring(stage: type[Stage[Any]]) -> str:
    sections = (inspect.getdoc(stage.run) or "").split("\n\n")
    results = [one for one in sections if one.startswith(("Returns:", "Raises:"))]
    arguments = "\n".join(f"    {field.name}: {_about(field)}" for field in fields_of(stage))
    return "\n\n".join([inspect.getdoc(stage) or "", f"Args:\n{arguments}", *results])


def _about(field: StageField) -> str:
    text = insert_member_names(field.about)
    if not field.default_words or field.default not in (None, MISSING):
        return text
    return f"{text.removesuffix('.')}; {field.default_words} by default." if text else field.default_words
