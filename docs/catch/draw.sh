#!/bin/sh
# Draw the pictures of docs/algorithms.md: every algorithm learns Catch, on one core, for seconds each. make algorithms
set -eu
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python}
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

draw() { # name, options
  name=$1
  shift
  "$python" -m dba3c.train --game=catch --preset=catch --run-dir="$runs/$name" --train.total_steps=30k --train.target_score=none \
    --train.log_every_seconds=0.2 --evaluate.every_updates=0 "$@"
  "$python" -m dba3c.report "$runs/$name" --out "$runs/$name-report"
  cp "$runs/$name-report/catch-steps.svg" "docs/catch/$name.svg"
}

adam="--optimizer.beta1=0.9 --optimizer.beta2=0.99"
q="$adam --algorithm.name=q --actor.carry=true --algorithm.target_every_steps=800 --algorithm.epsilon_steps=6k --algorithm.epsilons=[0.1,0.01]"
several="--actor.n_steps=32 --algorithm.passes=3 --algorithm.minibatches=4"
# shellcheck disable=SC2086 # options are words
{
  draw a3c
  draw ppo $adam $several --algorithm.name=ppo
  draw lstm $adam --env.blind=true --model.memory=32 --actor.n_steps=8 --optimizer.learning_rate=0.003 --train.total_steps=60k
  draw one-step-q $q --algorithm.returns=one_step
  draw one-step-sarsa $q --algorithm.returns=sarsa
  draw n-step-q $q --algorithm.returns=n_step
  draw q-lambda $q $several --algorithm.returns=lambda
  draw dqn $q --algorithm.returns=one_step --algorithm.double=true --algorithm.error_clip=1 --env.n_sim=4 --actor.n_steps=1 \
    --experience.capacity_steps=4k --experience.warm_up_steps=400 --train.batch_size=32 --train.total_steps=10k
  draw gorila --preset=gorila --env.profile=catch --ranks=4 --env.n_sim=4 --model.torso=nips --model.hidden=64 \
    --algorithm.target_every_updates=200 --algorithm.epsilon_updates=1500 --algorithm.epsilons=[0.05] \
    --experience.capacity_steps=4k --experience.warm_up_steps=200 --experience.steps_per_update=4 --comm.servers=2 \
    --comm.check_every_updates=2000 --checkpoint.every_updates=2000 --train.total_steps=24k --train.log_every_seconds=1
}
