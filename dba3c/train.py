"""Train an agent, alone or on any number of ranks.

python -m dba3c.train --preset fast --game breakout --run-dir runs/breakout
mpirun -np 4 python -m dba3c.train --preset fast --game pong --run-dir runs/pong
srun --mpi=pmix -N 64 python -m dba3c.train --run-dir runs/paper
"""

from __future__ import annotations

import os
import sys

from dba3c import cli, config, faults, handshake, launch


def main(argv: list[str]) -> int:
    if {"-h", "--help"} & set(argv):
        cli.train_parser().print_help()
        return launch.EXIT_OK
    return launch.job(lambda world: train(world, argv))


def train(world: launch.World, argv: list[str]) -> int:
    from dba3c import comm  # starts MPI, which --help need not

    order = launch.agreed(world, lambda: cli.train_order(argv))
    launch.agreed(world, lambda: handshake.check(world.comm, order.config, world.hosts))
    launch.agreed(world, lambda: config.check_ranks(order.config, world.size))
    launch.agreed(world, lambda: comm.refuse_unusable(order.config.comm))
    plan = launch.agreed(world, lambda: faults.planned(os.environ.get(faults.VARIABLE, "")))
    lock = launch.agreed(world, lambda: cli.prepare_directory(order.run_dir) if world.rank == 0 else None)
    launch.load_tensorflow(world.threads)
    from dba3c.run import Run  # imports TensorFlow

    try:
        return Run(world, order.config, order.run_dir, faults.Faults(plan, world.rank)).train()
    finally:
        if lock is not None:
            lock.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
