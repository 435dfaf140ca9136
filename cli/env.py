"""``mmgen env``: the environment for a bug report."""

import json
from typing import Annotated, Any

import typer

from mmgen.cli._console import print_result, print_result_lines

__all__ = ["env_command"]


def env_command(
    as_json: Annotated[bool, typer.Option("--json", help="Everything as one JSON line.")] = False,
) -> None:
    """Print versions, devices and plug-ins for a bug report, without names of people or folders."""
    from mmgen.commands import describe_environment

    facts = describe_environment()
    if as_json:
        print_result(json.dumps(facts))
        return
    rows = _fact_rows(facts)
    width = max(len(name) for name, _ in rows)
    print_result_lines([f"{name:<{width}}  {value}" for name, value in rows], rows)


def _fact_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return facts on the environment as rows of name and value."""
    from mmgen.core.memory import format_bytes

    processor, device, memory = facts["processor"], facts["device"], facts["memory"]
    sizes = [format_bytes(memory["bytes"]) if memory["bytes"] else "unknown"]
    sizes += [f"{format_bytes(memory['available'])} available"] if memory["available"] is not None else []
    gpus = [f"{one['name']} ({format_bytes(one['memory'])})" for one in device["gpus"]]
    rows = [
        ("mmgen", facts["mmgen"]["version"]),
        ("python", f"{facts['python']['version']} ({facts['python']['implementation']})"),
        ("system", " ".join(facts["system"].values())),
        ("processor", processor["name"]),
        ("cores", f"{processor['cores']}, {processor['threads of torch']} threads of torch"),
        ("memory", ", ".join(sizes)),
        ("torch", ", CUDA ".join(filter(None, facts["torch"].values()))),
        ("gpu", ", ".join(gpus) or "none that torch can use"),
        ("device auto", f"{device['auto']}, precision {device['precision']}"),
    ]
    for group, libraries in facts["libraries"].items():
        for name, version in libraries.items():
            if name == "torch":  # which stands above, with its build
                continue
            rows.append((name if group == "needed" else f"{name} [{group}]", version or "not installed"))
    rows += [] if facts["libraries"] else [("libraries", "mmgen is not installed as a distribution")]
    rows.append(("plug-ins", ", ".join(facts["plug-ins"]) or "none"))
    rows += [("code files", ", ".join(facts["code files"]))] if facts["code files"] else []
    rows += [(name, value) for name, value in facts["variables"].items()]
    return rows
