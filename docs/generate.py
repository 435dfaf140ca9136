"""Makes the pages of the site that follow from the code: ``commands.md``, ``settings.md`` and ``python.md``.

``make site`` takes them in; ``python docs/generate.py commands.md`` prints one.
"""

import inspect
import re
import sys
from typing import Any

import typer

import mmgen
from mmgen.cli._main import command_names, load_command
from mmgen.cli._members import MemberCommands
from mmgen.settings.registry import BUILT_IN, list_registries

OPENING = """# Commands

This page lists every command with its options. The [overview](../README.md) shows which ones you need first; the
[glossary](glossary.md) explains the words.

**Output.** Results go to stdout: the path of each file made, one per line, or the answer. `list`, `show`, `status`,
`eval` and `sample --from` print tables on a terminal. In a pipe or a file they print lines whose cells have tabs
between them, or JSON lines. Everything else goes to stderr.

**Pipes.** Where a command takes a path, `-` reads it from stdin. With several lines on stdin, the command runs once for
each.

**Exit codes.** 0 done, 1 something failed, 2 bad usage or settings, 130 interrupted, 143 terminated.

**Existing files.** No command replaces a finished dataset, model, judge, aggregate or file of scores without
`--overwrite`. Pages and pictures replace those of mmgen, which carry a mark, and other files only with `--overwrite`.
Nothing replaces a file that is not regular, such as a device or a pipe. `reproduce` and `quickstart` replace their own
files once these no longer fit, even if somebody has edited them since.

**Code.** No command imports a Python file or takes a plug-in from the current folder, nor does any process that it
starts. All of these processes end when the command does, however it ends. Python itself does two things before mmgen
starts. `python -m mmgen` takes the package from the current folder if something there is called `mmgen` (`mmgen` and
`python -P -m mmgen` do not). A `PYTHONPATH` with an empty entry makes Python look there as it starts.

CK, VE and WG are [the papers](papers.md) of Cremer and Kushman, Vedantam et al., and Wu and
Goodman.

"""


def _cell(text: str) -> str:
    """Text for a table cell: one line, no bar that would end the cell."""
    return " ".join(text.split()).replace("|", "\\|")


def _default(parameter: Any) -> str:
    value = parameter.default
    if parameter.required:
        return "required"
    if isinstance(parameter.show_default, str):
        return _cell(parameter.show_default)
    if value is None or callable(value) or value is False or value in ((), []) or not parameter.show_default:
        return ""
    if isinstance(value, bool):  # one of a pair, since a lone flag is off
        return f"`{parameter.opts[0]}`" if value else ""
    if isinstance(value, list | tuple):
        return " ".join(f"`{getattr(one, 'value', one)}`" for one in value)
    return f"`{getattr(value, 'value', value)}`" if str(value) else ""


def _spelling(parameter: Any, context: Any) -> str:
    """How a parameter is typed: ``--output, -o PATH``."""
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag or parameter.count:
        return f"`{names}`"
    value = parameter.metavar or parameter.display_type(context).strip("<>")
    return f"`{names} {value}`"


def _section(name: str) -> str:
    command = load_command(name)
    context = typer.Context(command, info_name=f"mmgen {name}")
    # A form feed ends what the terminal shows; markup is for the terminal.
    text = (command.help or "").split("\f")[0].strip()
    usage = " ".join(command.collect_usage_pieces(context))
    table = _table(command.params, context)
    return f"## mmgen {name}\n\n{text}\n\n```\nmmgen {name} {usage}\n```\n\n{table}\n{_of_members(command, context)}"


def _table(parameters: Any, context: Any) -> str:
    rows = [
        f"| {_spelling(p, context).replace('|', chr(92) + '|')} | {_cell(p.help or '')} | {_default(p)} |"
        for p in parameters
        if not p.hidden and "--help" not in p.opts
    ]
    return "\n".join(["| argument or option | meaning | default |", "|---|---|---|", *rows]) if rows else ""


def _of_members(command: Any, context: Any) -> str:
    """List the options of each member of a room, for a command that takes a member first."""
    if not isinstance(command, MemberCommands):
        return ""
    shared = {name for parameter in command.params for name in parameter.opts}
    parts = []
    for member in command.registry.members():
        if member.origin == BUILT_IN:
            own = [p for p in command.build_member_command(member.name).params if not shared & set(p.opts)]
            title = f"### mmgen {command.name} {member.name}"
            parts.append(f"\n{title}\n\n{member.about()}.\n\n{_table(own, context)}\n")
    return "".join(parts)


SETTINGS_OPENING = """# Settings

This page lists every setting of every member. The name is that of `--set`; in a TOML file, the words before the last
dot are the table. Unknown names are refused with the nearest right one.

`mmgen list objective telbo` prints the settings of one member, those of installed packages and of `--code` too.
`mmgen list preset NAME` prints a preset with the source of each value. CK, VE and WG are
[the papers](papers.md) of Cremer and Kushman, Vedantam et al., and Wu and Goodman.

"""


def _settings_table(found: Any) -> str:
    rows = [f"| `{one.name}` | {_cell(one.kind)} | {_cell(one.default)} | {_cell(one.about)} |" for one in found]
    return "\n".join(["| setting | type | default | what it does |", "|---|---|---|---|", *rows])


def settings_page() -> str:
    """Return the page of all settings as Markdown."""
    from mmgen.models._settings import DataSettings
    from mmgen.posteriors import AggregateSettings
    from mmgen.settings.settings_table import ROOM_KEYS, Setting, list_member_settings, list_settings
    from mmgen.training.settings import TrainingSettings

    parts = []
    for title, prefix, schema, without in (
        ("Training, of every stage that trains", "training.", TrainingSettings, ()),
        ("Data", "data.", DataSettings, ("modalities",)),
        ("Aggregates", "aggregate.", AggregateSettings, ("family",)),
    ):
        found = [
            Setting(prefix + one.name, one.kind, one.default, one.about)
            for one in list_settings(schema)
            if one.name.split(".")[0] not in without
        ]
        parts.append(f"## {title}\n\n{_settings_table(found)}")
    for room in list_registries():
        if room.noun not in ROOM_KEYS:
            continue
        parts.append(f"## {room.noun.capitalize()}")
        for member in room.members():
            if member.origin == BUILT_IN:
                found = list_member_settings(room.noun, room.get(member.name))
                parts.append(f"### {room.noun} `{member.name}`\n\n{member.about()}.\n\n{_settings_table(found)}")
    return SETTINGS_OPENING + "\n\n".join(parts) + "\n"


PYTHON_OPENING = """# From Python

This page lists the functions of `mmgen`, for notebooks and scripts. Each stage is a function as well as a command. It
takes paths or the result of another stage, and makes the same file as the command, bit for bit. It returns an object
whose `path` is the file. Settings have the names of the command line ([all](settings.md)). Progress is shown in a
notebook and nowhere else; `progress=False` switches it off. [A notebook](notebook.ipynb) shows them all.

```python
import mmgen

data = mmgen.make_data("mnist-a", "digits.h5", source="digits", size=32, grey=True, copies=40)
judge = mmgen.train_classifier(data, "judge.safetensors", network="small", steps=1000)
model = mmgen.train(data, "model.safetensors", preset="quickstart/digits", steps=4500)
fitted = mmgen.fit_aggregate(model, "aggregate.safetensors", steps=800)
scores = mmgen.evaluate(fitted, guidance=[0, 3], given_count=[4, 3], draws=24)
mmgen.sample(fitted, "digit=3 scale=big", guidance=3, output="threes.png")
pixels = fitted.sample("digit=3 NOT scale=big", n=16)  # [16, 1, 32, 32], in [0, 1]
```

The results go on to tables, figures and pages:

```python
tables = mmgen.compare(scores)  # shown by a notebook; tables.latex() for a paper
mmgen.plot("traversal", fitted, output="traversal.png")
mmgen.report([fitted, scores, judge], "report.html", guidance=3)  # or of a folder: mmgen.report(".")
mmgen.explore(fitted, "explore.html", number=8)
mmgen.export(fitted, "digits-model")  # a folder to send, with a model card
```

`mmgen.load` opens an existing model, aggregate or exported folder.

**Bounds.** Arguments have the bounds of the command line. An argument that is out of bounds, of another kind or
misspelt raises a `mmgen.core.errors.UsageError` of one sentence before any work: `seed=1.5`, `n=10**12`, `guidence=3`.

**Pictures** are arrays, tensors, lists or pictures of Pillow of the model's size. Values are in [0, 1], or bytes if the
dataset has bytes; a model of black and white takes only 0 and 1. **Codes** are whole numbers below each attribute's
number of values, or 255 for unknown.

"""


def _function_section(name: str) -> str:
    function = getattr(mmgen, name)
    listed: list[str] = []
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.KEYWORD_ONLY and "*" not in listed:
            listed.append("*")
        listed.append(str(one.replace(annotation=inspect.Parameter.empty)))
    return f"## mmgen.{name}\n\n```\nmmgen.{name}({', '.join(listed)})\n```\n\n{_docstring(function)}\n"


def _docstring(function: Any) -> str:
    """Convert a docstring to Markdown, with its Args as a list."""
    text, parts = inspect.getdoc(function) or "", []
    for part in text.split("\n\n"):
        head, _, rest = part.partition("\n")
        if head in ("Args:", "Raises:", "Returns:", "Example:"):
            if head == "Example:":
                parts.append(f"```\n{inspect.cleandoc(rest)}\n```")
                continue
            lines = re.sub(r"\n {5,}", " ", rest).splitlines()
            items = [re.sub(r"^(\w[\w, ]*): ", r"`\1`: ", line.strip()) for line in lines]
            parts.append(f"{head}\n\n" + "\n".join(f"* {item}" for item in items))
        else:
            parts.append(" ".join(part.split()))
    return re.sub(r"(?<!`)``([^`]+)``(?!`)", r"`\1`", "\n\n".join(parts))


def python_page() -> str:
    """Return the page of all functions as Markdown."""
    names = [name for name in mmgen.__all__ if not name.startswith("_")]
    return PYTHON_OPENING + "\n".join(_function_section(name) for name in names)


def commands_page() -> str:
    """Return the page of all commands as Markdown."""
    contents = "\n".join(f"* [`mmgen {name}`](#mmgen-{name})" for name in command_names())
    return OPENING + contents + "\n\n" + "\n".join(_section(name) for name in command_names())


PAGES = {"commands.md": commands_page, "settings.md": settings_page, "python.md": python_page}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in PAGES:
        sys.exit(f"got {' '.join(sys.argv[1:]) or 'nothing'}, expected one page of {', '.join(PAGES)}")
    print(PAGES[sys.argv[1]](), end="")
