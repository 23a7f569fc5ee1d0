"""dba3c COMMAND: one word for each program."""

from __future__ import annotations

import importlib
import sys

COMMANDS = {
    "train": "train an agent, alone or under mpirun or srun",
    "evaluate": "play greedy games with a trained agent",
    "report": "write one page about one run or several",
    "record": "film games of a trained agent",
    "export": "keep a run's agent, or its logs, as small files",
    "results": "write the table of results from kept logs",
    "bench": "measure speed on this machine",
    "tune": "find the fastest layout of ranks and games for this machine or node",
}


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in ("-h", "--help"):
        print("usage: dba3c COMMAND [options]\n")
        print("\n".join(f"  {name:10} {text}" for name, text in COMMANDS.items()))
        print("\ndba3c COMMAND --help tells its options.")
        return 0 if words else 2
    if words[0] not in COMMANDS:
        print(f"dba3c: {words[0]}: no such command; known: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"dba3c.{words[0]}")
    return int(module.main(words[1:]))


if __name__ == "__main__":
    sys.exit(main())
