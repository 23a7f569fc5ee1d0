#!/bin/bash
# Copies a virtual environment to a folder on the own disk of every node of a job, and prints its interpreter's path there.
# One file travels to each node, instead of thousands that every rank opens on the shared file system.
#   PYTHON=$(slurm/stage.sh .venv/bin/python /tmp)      inside a job of sbatch or salloc
#   slurm/stage.sh --remove "$PYTHON"                   at its end
set -euo pipefail
# Waits at most that many seconds: a node may be the one that has failed.
on_every_node() { timeout "$1" srun --mpi=none --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 "${@:2}" >&2; }

if [ "$1" = --remove ]; then
    folder=${2%/bin/python}
    [[ $folder == */dba3c-"$SLURM_JOB_ID" ]] || { echo "stage.sh: $2 was not staged by this job" >&2; exit 2; }
    on_every_node 60 rm -rf "$folder"
    exit
fi

environment=$(cd "$(dirname "$1")/.." && pwd)
[ -e "$environment/pyvenv.cfg" ] || { echo "stage.sh: $1 is not in a virtual environment; name one that is" >&2; exit 2; }
archive=$environment.tar                            # packed once, on the shared file system; again after each pip install
folder=$2/dba3c-$SLURM_JOB_ID
newest=$(ls -td "$environment"/pyvenv.cfg "$environment"/lib/python*/site-packages "$archive" 2>/dev/null | head -1) || true
if [ "$newest" != "$archive" ]; then
    tar --create --file "$archive.$SLURM_JOB_ID" --directory "$environment" .
    mv "$archive.$SLURM_JOB_ID" "$archive"          # at once: other jobs may be reading it
fi
sbcast --force "$archive" "$folder.tar" >&2
on_every_node 3600 sh -c "mkdir -p '$folder' && tar --extract --file '$folder.tar' --directory '$folder' && rm '$folder.tar'"
echo "staged $environment in $folder on $SLURM_JOB_NUM_NODES nodes" >&2
echo "$folder/bin/python"
