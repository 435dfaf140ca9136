"""``python -m cli`` is ``mmgen``, for where the console script is not on the path."""

from cli._main import main

main()
