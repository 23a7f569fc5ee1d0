"""The menu: `dba3c COMMAND` runs the module of the same name."""

from __future__ import annotations

import importlib
import sys

COMMANDS = {
    "train": "train an agent, alone, on ranks of this machine, or under mpirun or srun",
    "sweep": "train many agents: games × settings × seeds",
    "evaluate": "play episodes with a trained agent",
    "status": "show how far runs are",
    "report": "write a page about one run or several",
    "record": "film episodes of a trained agent",
    "export": "export a run's agent, or its logs, as small files",
    "games": "list the games, human scores and the agents that come with dba3c",
    "config": "print a resolved configuration",
    "version": "print the versions and the machine, for a bug report",
    "results": "write the table of results from exported logs",
    "bench": "measure speed on this machine",
    "tune": "find the fastest layout of ranks and simulators for this machine or node",
}
MODULES = {"config": "show_config"}  # dba3c.config is a room
HELP = ("-h", "--help", "help")


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["help"] and len(words) > 1:
        words = [words[1], "--help"]
    if not words or words[0] in HELP:
        show_menu()
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        words = ["version", *words[1:]]
    if words[0] not in COMMANDS:
        from dba3c.config.messages import suggest

        print(f"dba3c: {words[0]}: no such command{suggest(words[0], COMMANDS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"dba3c.{MODULES.get(words[0], words[0])}")
    return int(module.main(words[1:]))


def show_menu() -> None:
    print("usage: dba3c COMMAND [options]\n")
    print("\n".join(f"  {name:10} {text}" for name, text in COMMANDS.items()))
    print("\nSee dba3c COMMAND --help for its options.")


if __name__ == "__main__":
    sys.exit(main())
