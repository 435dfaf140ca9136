#!/usr/bin/env bash
# On a machine with a GPU: CUDA tests, training throughput, then as much of the published schedules as ten minutes hold.
#
#   benchmarks/gpu.sh MNIST_FOLDER [OUTPUT_FOLDER] [MINUTES_PER_OBJECTIVE]
#
# TAEF2, if set, names a folder with the weights of a tiny autoencoder. Needs mmgen installed. Writes checkpoints, logs and scores.jsonl below the output folder; prints a table.
set -euo pipefail
mnist=${1:?usage: benchmarks/gpu.sh MNIST_FOLDER [OUTPUT_FOLDER] [MINUTES_PER_OBJECTIVE]}
out=${2:-runs/gpu}
minutes=${3:-2}
mkdir -p "$out"
nvidia-smi --query-gpu=name,memory.total --format=csv,noheader

python -m pytest -q tests/testing/test_cuda.py

[ -f "$out/mnist-a.h5" ] || mmgen make-data mnist-a --mnist "$mnist" -o "$out/mnist-a.h5"
mmgen train-classifier "$out/mnist-a.h5" --network vedantam --minutes "$minutes" -o "$out/judge.safetensors"
for objective in telbo jmvae bivcca; do
    model="$out/$objective.safetensors"
    mmgen train "$out/mnist-a.h5" --preset "vedantam/$objective-mnist-a" --device cuda --minutes "$minutes" -o "$model"
    grep '"rate"' "$out/$objective.log.jsonl" | tail -n 1
    aggregate=$(mmgen fit-aggregate "$model" --device cuda)
    for file in "$model" "$aggregate"; do
        mmgen eval "$file" --judge "$out/judge.safetensors" --metric correctness --metric coverage --json --device cuda |
            tee -a "$out/scores.jsonl"
    done
done
# Wu and Goodman's Table 2 on BinaryMNIST, as far as the minutes go.
[ -f "$out/binary-mnist.h5" ] || mmgen make-data binary-mnist --mnist "$mnist" -o "$out/binary-mnist.h5"
for preset in binary-mnist-vae binary-mnist-jmvae binary-mnist; do
    model="$out/wu-$preset.safetensors"
    mmgen train "$out/binary-mnist.h5" --preset "wu/$preset" --split official --device cuda --minutes "$minutes" \
        --set training.schedule=cosine --set objective.kl_warmup_steps=4500 -o "$model"
    grep '"rate"' "$out/wu-$preset.log.jsonl" | tail -n 1
    mmgen eval "$model" --metric log-likelihood --samples 1000 --number 10000 --json --device cuda | tee -a "$out/wu.jsonl"
done
# z with places, batches of 512: Two Objects at 112x112 (z 14x14 of TAEF2) and 128x128 (z of our own autoencoder), images a second in the logs.
for side in 112 128; do
    scenes="$out/two-objects-$side.h5"
    [ -f "$scenes" ] || mmgen make-data two-objects --number 20000 --size "$side" -o "$scenes"
    model="$out/places-$side.safetensors"
    if [ "$side" = 128 ]; then
        mmgen train "$scenes" --preset flow/two-objects-cpu --set model.latent_size=[4,16,16] --batch 512 --device cuda --minutes "$minutes" -o "$model"
    elif [ -n "${TAEF2:-}" ]; then
        mmgen train "$scenes" --preset flow/autoencoder --set model.weights="$TAEF2" --batch 512 --device cuda -o "$model"
    else
        continue
    fi
    flow="$out/places-$side-flow.safetensors"
    mmgen fit-aggregate "$model" --dataset "$scenes" --family rectified-flow --given text --batch 512 --steps 2000 --device cuda -o "$flow"
    grep -h '"rate"' "${model%.safetensors}.log.jsonl" "${flow%.safetensors}.log.jsonl" | tail -n 1
    mmgen sample "$flow" --given "large red rubber cube left small blue metal sphere" --guidance cfg:1 -n 16 --device cuda -o "$out/places-$side.png"
done
mmgen report "$out"/*-aggregate-*.safetensors "$out/scores.jsonl" -o "$out/report.html"
