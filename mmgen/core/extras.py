"""Optional libraries: the extra of each, and imports outside the current folder, whose files may be hostile."""

import os
import re
import shlex
from contextlib import AbstractContextManager, chdir, nullcontext
from importlib.metadata import PackageNotFoundError, requires

DISTRIBUTION = "mmgen-toolkit"
"""Name of the installed distribution. No message shows it, since it may be published under another name."""


def extra_requirements() -> dict[str, list[str]]:
    """Return the requirements of each optional extra of the package; those of the package itself are under "".

    Returns:
        Requirements without their conditions, by extra; {} where mmgen runs without being installed.
    """
    extras: dict[str, list[str]] = {}
    try:
        requirements = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return {}
    for line in requirements:
        requirement, _, condition = line.partition(";")
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", condition)
        if not requirement.startswith(DISTRIBUTION):  # an extra that is made of others
            extras.setdefault(extra[1] if extra else "", []).append(requirement.strip())
    return extras


def how_to_install(extra: str) -> str:
    """Return the commands that install an extra, as the end of a sentence about a missing library.

    Example:
        >>> print(how_to_install("tensorboard"))
        pip install 'tensorboard>=2.18' (in a clone of mmgen: pip install '.[tensorboard]')
    """
    libraries = shlex.join(extra_requirements().get(extra, []))
    clone = f"pip install '.[{extra}]'"
    return f"pip install {libraries} (in a clone of mmgen: {clone})" if libraries else f"{clone} in a clone of mmgen"


def outside_current_folder() -> AbstractContextManager[None]:
    """Change the current folder to "/" inside a ``with`` block, so that no file of the user's folder is imported.

    Example:
        >>> here = os.getcwd()
        >>> with outside_current_folder():
        ...     os.getcwd() == here
        False
        >>> os.getcwd() == here
        True
    """
    try:
        os.getcwd()
    except OSError:  # a folder that is gone holds no settings, and there is no way back
        return nullcontext()
    return chdir(os.path.abspath(os.sep))
