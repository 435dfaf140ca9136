#!/usr/bin/env bash
# Makes MultiVae's own environment (once) and runs the comparison; arguments go to compare.py,
# or after the word "six" to compare_six.py (MVAE with six image modalities). Needs `make quickstart`'s .venv.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=.venvs/multivae/bin/python
if ! "$python" -c 'import torch, pythae' 2>/dev/null; then
    python3 -m venv .venvs/multivae
    "$python" -m pip install --quiet --requirement benchmarks/multivae/requirements.txt
fi
script=compare.py
if [ "${1:-}" = six ]; then
    script=compare_six.py
    shift
fi
exec .venv/bin/python "benchmarks/multivae/$script" "$@"
