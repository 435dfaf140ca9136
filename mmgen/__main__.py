"""``python -m mmgen`` is ``mmgen``, for where the console script is not on the path."""

from mmgen.cli._main import main

main()
