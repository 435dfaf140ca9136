#!/usr/bin/env bash
# How cost grows with the number of own pictures: processor seconds and peak memory of each command, one thread. Needs mmgen installed; Linux only.
#
#   benchmarks/scaling.sh [OUTPUT_FOLDER] [NUMBER ...]
set -euo pipefail
out=${1:-runs/scaling}
shift || true
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1
mkdir -p "$out"
python "$(dirname "$0")/scaling.py" "$out" "${@:-2000 8000 32000}" | tee "$out/scaling.txt"
