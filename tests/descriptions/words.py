"""Attributes that descriptions are tried on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


MNIST_A = Words(
    ("digit", "scale", "orientation", "location"),
    (
        tuple("0123456789"),
        ("big", "small"),
        ("clockwise", "upright", "counterclockwise"),
        ("top-left", "top-right", "bottom-left", "bottom-right"),
    ),
)
FRUIT = Words(("colour", "fruit"), (("red", "orange", "deep red"), ("apple", "orange")))
SIGNS = Words(("kind", "size"), (("f(x)", ":)", "(none)", "f(", "AND"), ("big", "small")))
