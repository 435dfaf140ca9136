#!/usr/bin/env bash
# Makes MultiVae's own environment, data and judges (once) and runs time to quality; arguments go to quality.py.
#
#   benchmarks/multivae/quality.sh [FOLDER] [--limit 600] [--trial 100]
#
# MULTIVAE_PYTHON names the python of an environment that has MultiVae already. One thread: quantities are processor seconds.
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1 MULTIVAE_PYTHON=${MULTIVAE_PYTHON:-$PWD/.venvs/multivae/bin/python}
if ! "$MULTIVAE_PYTHON" -c 'import torch, pythae' 2>/dev/null; then
    python3 -m venv .venvs/multivae
    .venvs/multivae/bin/python -m pip install --quiet --requirement benchmarks/multivae/requirements.txt
fi
folder=runs/time-to-quality
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
    folder=$1
    shift
fi
mkdir -p "$folder"
# As mmgen quickstart makes them.
mmgen=.venv/bin/mmgen
judge=(train-classifier "$folder/digits.h5" --steps 1000 --set training.validate_every=100)
[ -f "$folder/digits.h5" ] || $mmgen make-data mnist-a --source digits --size 32 --grey --copies 40 --seed 0 -o "$folder/digits.h5"
[ -f "$folder/judge.safetensors" ] || $mmgen "${judge[@]}" --network small --seed 0 -o "$folder/judge.safetensors"
[ -f "$folder/second-judge.safetensors" ] || $mmgen "${judge[@]}" --network attentive --seed 1 -o "$folder/second-judge.safetensors"
exec .venv/bin/python benchmarks/multivae/quality.py "$folder" "$@"
