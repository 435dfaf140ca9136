#!/usr/bin/env bash
# Trainings that take hours of two cores; each line goes on where it stopped. Results go to RESULTS.md.
#
#   benchmarks/long.sh [OUTPUT_FOLDER]
#
# Needs mmgen installed, and MNIST (downloaded, or --mnist FOLDER in MNIST_OPTIONS).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-runs/long}
mkdir -p "$out" && cd "$out"

# Families of the aggregated posterior and their guidance, quickstart's digits, five seeds: two hours.
mmgen reproduce "$here/families.toml" --seeds 5 --output families

# The same on MNIST-A at 64x64, and on combinations that were never seen: six hours.
[ -f mnist-a.h5 ] || mmgen make-data mnist-a ${MNIST_OPTIONS:-} -o mnist-a.h5
[ -f judge.safetensors ] || mmgen train-classifier mnist-a.h5 --network small --seed 0 -o judge.safetensors
[ -f second-judge.safetensors ] || mmgen train-classifier mnist-a.h5 --network vedantam --seed 1 -o second-judge.safetensors
for split in iid compositional; do
    for seed in 0 1 2; do
        model="elbo-$split-$seed.safetensors"
        mmgen train mnist-a.h5 --preset cremer/elbo-mnist-a-cpu --split "$split" --seed "$seed" -o "$model"
        for family in realnvp nsf rectified-flow; do
            fit="${model%.safetensors}-$family.safetensors"
            mmgen fit-aggregate "$model" --family "$family" --steps 3000 --seed "$seed" -o "$fit"
            guidance=0,3,3:balanced
            [ "$family" = rectified-flow ] && guidance=0,cfg:0.25,cfg:0.5,cfg:1
            [ -f "${fit%.safetensors}.jsonl" ] || mmgen eval "$fit" --split "$split" --guidance "$guidance" --judge judge.safetensors \
                --judge second-judge.safetensors -m correctness -m coverage -m recall -m precision -m kid -o "${fit%.safetensors}.jsonl"
        done
    done
done
