"""The command line: parsing, messages, progress bars, and what each command prints.

``mmgen fit-aggregate`` is the class of ``mmgen/commands/fit_aggregate.py``, which ``fit_aggregate_command`` in
``cli/_make.py`` runs and prints. Files import nothing heavy at the top, so that help answers at once.
"""
