"""The menu: `dba3c COMMAND` runs the module of the same name."""

from __future__ import annotations

import importlib
import sys

COMMANDS = {
    "train": "train an agent, alone or under mpirun or srun",
    "evaluate": "play greedy episodes with a trained agent",
    "report": "write a page about one run or several",
    "record": "film episodes of a trained agent",
    "export": "export a run's agent, or its logs, as small files",
    "results": "write the table of results from exported logs",
    "bench": "measure speed on this machine",
    "tune": "find the fastest layout of ranks and simulators for this machine or node",
}


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in ("-h", "--help"):
        print("usage: dba3c COMMAND [options]\n")
        print("\n".join(f"  {name:10} {text}" for name, text in COMMANDS.items()))
        print("\nSee dba3c COMMAND --help for its options.")
        return 0 if words else 2
    if words[0] not in COMMANDS:
        print(f"dba3c: {words[0]}: no such command; known: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"dba3c.{words[0]}")
    return int(module.main(words[1:]))


if __name__ == "__main__":
    sys.exit(main())
