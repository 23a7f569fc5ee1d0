#!/bin/sh
# Make the experiments of docs/claims.md: sweeps on one core, which can be stopped and resumed, then measurements, which want an idle
# machine; and keep what the page needs of them. make claims-runs
set -eu
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python}
kept=docs/claims/kept

sweep() { # sheet, options
  sheet=$1
  shift
  "$python" -m dba3c.sweep "docs/claims/$sheet.yaml" --jobs 1 --out "runs/claims/$sheet" "$@"
}

for sheet in d1 d2 d3 p2 a1 a5 g1 r1; do sweep $sheet; done
sweep g3 --plugin docs/claims/plain_log.py
sweep r3 --plugin docs/claims/spikes.py
"$python" docs/claims/keep.py runs/claims $kept
"$python" docs/claims/weights.py > $kept/d8.json
"$python" docs/claims/stragglers.py > $kept/d10.json
"$python" docs/claims/logarithms.py > $kept/g2.json
for run in 1 2 3; do
  "$python" -m dba3c.bench stragglers --seconds 2 --json $kept/d6-$run.json
  "$python" -m dba3c.bench scaling --seconds 2 --hidden 32,128,512 --json $kept/d4-$run.json
done
