"""The command line: one file per subcommand, each only parses, talks and draws progress.

``mmgen fit-aggregate`` is ``fit_aggregate_command`` in ``cli/fit_aggregate.py``. The files import nothing heavy at the
top: what does the work is imported by the function when it runs, so that help answers at once.
"""
