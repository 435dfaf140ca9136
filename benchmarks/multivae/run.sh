#!/usr/bin/env bash
# Makes MultiVae's own environment (once) and runs the comparison; arguments go to compare.py. Needs `make quickstart`'s .venv.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=.venvs/multivae/bin/python
if ! "$python" -c 'import torch, pythae' 2>/dev/null; then
    python3 -m venv .venvs/multivae
    "$python" -m pip install --quiet --requirement benchmarks/multivae/requirements.txt
fi
exec .venv/bin/python benchmarks/multivae/compare.py "$@"
