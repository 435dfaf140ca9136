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
            guidance=0,3,10
            [ "$family" = rectified-flow ] && guidance=0,cfg:0.25,cfg:0.5,cfg:1
            for asked in complete no-complete; do
                [ -f "${fit%.safetensors}-$asked.jsonl" ] || mmgen eval "$fit" --"$asked" --split "$split" --guidance "$guidance" --judge judge.safetensors \
                    --judge second-judge.safetensors -m correctness -m coverage -m agreement -m recall -m precision -m kid -o "${fit%.safetensors}-$asked.jsonl"
            done
        done
    done
done

# Tables 1 and 2 of Cremer and Kushman with their two modalities, and with attributes as a third: four hours of two cores.
mmgen reproduce cremer-table1
mmgen reproduce cremer-table2
mmgen reproduce cremer-table1-attributes

# Two Objects at 64x64: z of 50 numbers, a grid of our own, and TAEF2's (a folder of weights); couplings and flows, retrieval, a flow over pixels. A day of two cores.
[ -f two-objects.h5 ] || mmgen make-data two-objects --size 64 -o two-objects.h5
[ -f two-judge.safetensors ] || mmgen train-classifier two-objects.h5 --network attentive --steps 2500 --seed 0 -o two-judge.safetensors
[ -f two-second-judge.safetensors ] || mmgen train-classifier two-objects.h5 --network small --steps 4000 --seed 1 -o two-second-judge.safetensors
for z in 50 grid taef2 pixels; do
    model="two-$z.safetensors"
    case "$z" in
        50) mmgen train two-objects.h5 --preset cremer/two-objects-attributes-cpu --seed 0 -o "$model" ;;
        grid) mmgen train two-objects.h5 --preset flow/two-objects-cpu --seed 0 -o "$model" ;;
        taef2) [ -n "${TAEF2:-}" ] || continue
            mmgen train two-objects.h5 --preset flow/autoencoder --set model.weights="$TAEF2" --seed 0 -o "$model" ;;
        pixels) mmgen train two-objects.h5 --preset flow/autoencoder --set model.codec.name=pixels --seed 0 -o "$model" ;;
    esac
    steps=20000 families=rectified-flow
    [ "$z" = 50 ] && families="realnvp rectified-flow"
    for family in $families; do
        fit="two-$z-$family"
        mmgen fit-aggregate "$model" --family "$family" --given text --steps "$steps" --seed 0 -o "$fit.safetensors"
        guidance=0,3
        [ "$family" = rectified-flow ] && guidance=0,cfg:0.5,cfg:1,cfg:2
        [ -f "$fit.jsonl" ] || mmgen eval "$fit.safetensors" --guidance "$guidance" --judge two-judge.safetensors --judge two-second-judge.safetensors \
            --queries 1000 --draws 6 -m correctness -m binding -m position -m kid -m copies -o "$fit.jsonl"
    done
done
[ -f two-retrieval.jsonl ] || mmgen eval two-50-realnvp.safetensors --posterior retrieval --judge two-judge.safetensors --judge two-second-judge.safetensors \
    --queries 1000 --draws 6 -m correctness -m binding -m position -m copies -o two-retrieval.jsonl

# Words first: every way from words to pictures, as it is and completed, three seeds of each set: four hours. LETTERS, HANDS and EMOJI are folders or
# zips of pictures with a metadata.csv; without them these are left out. The weights of the rivals' divergences are those that validation chose.
words_first() {
    local data="$1" preset="$2" steps="$3" beta="$4" plain="$5"
    (
        cd "$data"
        [ -f judge.safetensors ] || mmgen train-classifier "$data.h5" --network small --steps 1000 --seed 0 -o judge.safetensors
        [ -f second-judge.safetensors ] || mmgen train-classifier "$data.h5" --network attentive --steps 1000 --seed 1 -o second-judge.safetensors
        for seed in 0 1 2; do
            rival=(--preset "$preset" --objective cvae --set objective.hidden_share=0.1 --steps "$steps" --seed "$seed")
            mmgen train "$data.h5" --preset "$preset" --steps "$steps" --seed "$seed" -o "model-$seed.safetensors"
            for fit in half-0.5 all-1; do
                mmgen fit-aggregate "model-$seed.safetensors" --family rectified-flow --steps 1000 --set aggregate.keep_all="${fit#*-}" \
                    --seed "$seed" -o "flow-$seed-${fit%-*}-1000.safetensors"
            done
            mmgen train "$data.h5" --preset quickstart/plain-cvae --set objective.beta="$plain" --steps "$steps" --seed "$seed" -o "plain-cvae-$seed-$plain.safetensors"
            mmgen train "$data.h5" "${rival[@]}" --set objective.beta="$beta" -o "st-cvae-$seed-$beta.safetensors"
            mmgen train "$data.h5" "${rival[@]}" --set objective.beta=0.1 -o "st-cvae-$seed-0.1.safetensors"
            mmgen fit-aggregate "st-cvae-$seed-0.1.safetensors" --family rectified-flow --steps 1000 --set aggregate.keep_all=1 --seed "$seed" \
                -o "st-cvae-flow-$seed.safetensors"
        done
    )
    python "$here/words_first.py" "$data" "$data" > "$data/words-first.md"
}
mkdir -p shapes digits letters hands emoji
[ -f shapes/shapes.h5 ] || mmgen make-data shapes --number 6000 --seed 0 -o shapes/shapes.h5
[ -f digits/digits.h5 ] || mmgen make-data mnist-a --source digits --size 32 --grey --copies 40 --seed 0 -o digits/digits.h5
words_first shapes quickstart/shapes 1500 10 10
words_first digits quickstart/digits 4500 1 1
for own in "letters:${LETTERS:-}" "hands:${HANDS:-}" "emoji:${EMOJI:-}"; do
    [ -n "${own#*:}" ] || continue
    name="${own%%:*}"
    [ -f "$name/$name.h5" ] || mmgen make-data folder "${own#*:}" --size 64 --seed 0 -o "$name/$name.h5"
    words_first "$name" quickstart/pictures 2300 10 10
done

# Conditional VAEs with a learned prior, beside densities fitted afterwards: some two hours of one core for each set of data.
for data in shapes digits; do
    python "$here/conditional_vaes.py" "conditional-vaes-$data" "$data" --toml "conditional-vaes-$data.toml" > "conditional-vaes-$data.md"
done
if [ -n "${LETTERS:-}" ]; then
    mkdir -p conditional-vaes-letters && cp letters/letters.h5 conditional-vaes-letters
    python "$here/conditional_vaes.py" conditional-vaes-letters letters > conditional-vaes-letters.md
fi

# Emoji from words with a pretrained autoencoder, an hour of one core: TWEMOJI names twemoji-64.zip, TAEF2 the folder of weights.
if [ -n "${TWEMOJI:-}" ] && [ -n "${TAEF2:-}" ]; then
    [ -f emoji-names.h5 ] || mmgen make-data folder "$TWEMOJI" --attributes category,subcategory,skin_tone --unknown NA --group text -o emoji-names.h5
    mmgen train emoji-names.h5 --preset flow/autoencoder --set model.weights="$TAEF2"
    mmgen fit-aggregate emoji-names-autoencoder.safetensors --family rectified-flow --given text --steps 15000 \
        --set aggregate.family.patch=2 --set aggregate.family.dropout=0.1 --set aggregate.text_network.encoder=bag \
        --set aggregate.text_network.embedding=128 --set training.keep=last -o emoji-names-flow.safetensors
    mmgen eval emoji-names-flow.safetensors -m copies --guidance 0,cfg:2 -o emoji-names-flow.jsonl --overwrite
fi

# DRAW of 8 and 16 steps on fixed binary MNIST with densities over z of all steps, alignDRAW on MNIST captions beside conditional VAEs of
# equal size: twelve hours of one core. BINARY_MNIST is the folder of Larochelle and Murray's three files.
if [ -n "${BINARY_MNIST:-}" ]; then
    [ -f binary-mnist.h5 ] || mmgen make-data binary-mnist --amat "$BINARY_MNIST" -o binary-mnist.h5
    for steps in 8 16; do
        mmgen train binary-mnist.h5 --preset gregor/mnist-cpu --set model.steps="$steps" -o "draw-$steps.safetensors"
        for family in realnvp rectified-flow; do
            fit="draw-$steps-$family"
            mmgen fit-aggregate "draw-$steps.safetensors" --given nothing --family "$family" -o "$fit.safetensors"
            [ -f "$fit.jsonl" ] || mmgen eval "$fit.safetensors" --number 200 -m log-likelihood -m kid -o "$fit.jsonl"
        done
        [ -f "draw-$steps.jsonl" ] || mmgen eval "draw-$steps.safetensors" --number 10000 --samples 100 --proposal image \
            -m log-likelihood -m active-units -o "draw-$steps.jsonl"
    done
fi
[ -f mnist-captions.h5 ] || mmgen make-data mnist-captions --size 28 ${MNIST_OPTIONS:-} -o mnist-captions.h5
[ -f captions-judge.safetensors ] || mmgen train-classifier mnist-captions.h5 --network small --steps 2500 -o captions-judge.safetensors
for rival in "" -noalign -fc -conv; do
    preset="mansimov/mnist-captions${rival}-cpu" further=()
    [ "$rival" = -noalign ] && preset=mansimov/mnist-captions-cpu further=(--set model.alignment=0)
    for seed in 0 1 2; do
        model="captions$rival-$seed"
        mmgen train mnist-captions.h5 --preset "$preset" "${further[@]}" --seed "$seed" -o "$model.safetensors"
        for split in iid heldout; do
            [ -f "$model-$split.jsonl" ] || mmgen eval "$model.safetensors" --split "$split" --judge captions-judge.safetensors --queries 1000 --draws 2 \
                --samples 100 -m correctness -m log-likelihood -m retrieval -m ssi -o "$model-$split.jsonl"
        done
    done
done

# Translation: shares of pairs on Multi30k (six hours of one core with three seeds), four languages in one model, and IWSLT'15 as WG have it (a GPU). MULTI30K is
# the folder of task 1's tokenised files, IWSLT that of train, tst2012 and tst2013.
if [ -n "${MULTI30K:-}" ]; then
    for seed in 0 1 2; do
        folder="wu-table4-cpu-seed$seed"
        mkdir -p "$folder" && ln -sfn "$(realpath "$MULTI30K")" "$folder/multi30k"
        mmgen reproduce wu-table4 --seed "$seed" -o "$folder"
    done
    [ -f four.h5 ] || mmgen make-data parallel-text --languages en,de,fr,cs --train "$MULTI30K/train.lc.norm.tok" \
        --val "$MULTI30K/val.lc.norm.tok" --test "$MULTI30K/test_2016_flickr.lc.norm.tok" -o four.h5
    for share in 0.01 1; do
        mmgen train four.h5 --preset wu/translation-cpu --set 'objective.modalities=["en","de","fr","cs"]' --set objective.subsets=1 \
            --steps 5000 --paired "$share" -o "four-$share.safetensors"
        [ -f "four-$share.jsonl" ] || mmgen eval "four-$share.safetensors" --posterior own -m sentences -m translation -m bleu -o "four-$share.jsonl"
        mmgen fit-aggregate "four-$share.safetensors" --given en -o "four-$share-en.safetensors"
        [ -f "four-$share-en.jsonl" ] || mmgen eval "four-$share-en.safetensors" --posterior own --posterior aggregate -m translation -m bleu \
            -o "four-$share-en.jsonl"
    done
fi
if [ -n "${IWSLT:-}" ]; then
    mkdir -p wu-table4-paper && ln -sfn "$(realpath "$IWSLT")" wu-table4-paper/iwslt15-en-vi
    mmgen reproduce wu-table4 --scale paper
fi

# Figure 4a of Vedantam et al. at CPU scale: TELBO, JMVAE and BiVCCA on both splits, six hours of one core.
mmgen reproduce vedantam-figure4

# Emoji as words, the stand-in for CelebA, longer than in RESULTS.md: an hour of one core. TWEMOJI names twemoji-64.zip.
if [ -n "${TWEMOJI:-}" ]; then
    [ -f twemoji-words.h5 ] || python "$here/twemoji_words.py" "$TWEMOJI" twemoji-words.h5
    mmgen reproduce "$here/twemoji-words.toml" --data twemoji-words.h5 --seeds 3
fi

# Sharpened pictures of Two Objects, three seeds, after the block of Two Objects above: an hour of one core.
if [ -f two-50-realnvp.safetensors ]; then
    for seed in 0 1 2; do
        sharp="two-50-sharp-$seed"
        mmgen fit-sharpener two-50-realnvp.safetensors --seed "$seed" -o "$sharp.safetensors"
        [ -f "$sharp.jsonl" ] || mmgen eval "$sharp.safetensors" --judge two-judge.safetensors --judge two-second-judge.safetensors \
            --queries 1000 --draws 6 -m correctness -m binding -m kid -m recall -m copies -o "$sharp.jsonl"
    done
fi

# The quickstart in colour: shapes that mmgen draws, three seeds.
for seed in 0 1 2; do
    mmgen quickstart --data shapes --seed "$seed" -o "shapes-$seed"
done

# Does the advice below the table help? Twice the steps of the model in colour, then the same fit and scores.
for seed in 0 1 2; do
    (
        cd "shapes-$seed"
        mmgen train shapes.h5 --preset quickstart/pictures --steps 5000 --seed "$seed" -o model-5000.safetensors
        mmgen fit-aggregate model-5000.safetensors --family rectified-flow --steps 1000 --set training.validate_every=100 --seed "$seed" \
            -o aggregate-5000.safetensors
        [ -f advice.jsonl ] || mmgen eval aggregate-5000.safetensors --judge judge.safetensors --judge second-judge.safetensors \
            --given-count 4,2,1 --draws 24 --queries 60 -m correctness -m coverage -m recall -m copies --seed "$seed" -o advice.jsonl
    )
done

# Multimodal VAEs on CdSprites and five grounds, all models and three seeds, and trials of beta: some nine hours of one core.
mmgen reproduce rivals-cdsprites --seeds 3
mmgen reproduce rivals-strided --seeds 3
mmgen reproduce "$here/rivals-trials.toml" --output rivals-trials
mmgen reproduce rivals-grounds --seeds 3

# Tables 1 to 3 of Wu and Goodman on MNIST and FashionMNIST, two hours of one core each, and on MultiMNIST.
for data in mnist fashion-mnist multimnist; do
    mmgen reproduce wu-table2 --data "$data"
done

# Strings read off MultiMNIST by number of pairs, two hours of one core; two maps of z of two numbers, ten minutes.
mmgen reproduce wu-figure3 --data multimnist
mmgen reproduce vedantam-figure7

# OMNIGLOT (a folder with chardata.mat or the zips): VAE and IWAE of one and two layers, k = 1, 5, 50: a day of one core.
if [ -n "${OMNIGLOT:-}" ]; then
    mkdir -p burda-omniglot-cpu && ln -sfn "$(realpath "$OMNIGLOT")" burda-omniglot-cpu/omniglot
    mmgen reproduce burda-table1 --data omniglot
fi

# CelebA (a folder of the original files): Tables 1 and 2 of Cremer and Kushman, Figure 5 of Vedantam et al., ELBO terms of Wu and Goodman.
if [ -n "${CELEBA:-}" ]; then
    for folder in cremer-celeba-cpu vedantam-celeba-cpu wu-elbo-terms-cpu; do
        mkdir -p "$folder" && ln -sfn "$(realpath "$CELEBA")" "$folder/celeba"
    done
    mmgen reproduce cremer-table1 --data celeba-words
    mmgen reproduce cremer-table2 --data celeba-words
    mmgen reproduce vedantam-figure5
    mmgen reproduce wu-elbo-terms
fi

# Time to quality beside MultiVae, with a limit of 600 processor seconds and trials of 100: three hours of one core for each seed.
for seed in 0 1 2 3 4; do
    "$here/multivae/quality.sh" "$PWD/time-to-quality" --limit 600 --trial 100 --seed "$seed"
done

# Pictures of words that no training picture has: two more seeds where a drawing changes, and of hands and folders; seven minutes of a core each.
for seed in 1 2; do
    for set in drawings hands; do
        [ -d "$set" ] || python "$here/gaps.py" make "$set" "$TWEMOJI" -o "$set"   # the zip of 64-pixel pictures with metadata.csv
        python "$here/gaps.py" train "$set" --seed "$seed"
        python "$here/gaps.py" score "$set" "aggregate-$seed.safetensors"
    done
done
