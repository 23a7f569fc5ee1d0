"""Names and ROMs of ale-py's games."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from ale_py import roms

from dba3c.config.messages import ConfigError, shown, suggest
from dba3c.config.schema import Env

FOR_TWO = ("combat", "joust", "maze_craze", "warlords")  # the emulator would end the process
# Names of gym and gymnasium, such as ALE/Pong-v5 and PongNoFrameskip-v4; how they step is env.profile's business.
REGISTERED = re.compile(r"(?:ALE/)?(\w+?)(?:NoFrameskip|Deterministic)?-v\d", re.IGNORECASE)


def games() -> list[str]:
    """List ale-py's games for one player."""
    return sorted(game for game in map(str, roms.get_all_rom_ids()) if game not in FOR_TWO)


def resolve_game(name: str, field: str) -> str:
    """ale-py's name of a game that may be written Breakout, SpaceInvaders, space-invaders, ALE/Breakout-v5, …"""
    known = {game.replace("_", ""): str(game) for game in roms.get_all_rom_ids()}
    registered = REGISTERED.fullmatch(name)
    plain = "".join(letter for letter in (registered[1] if registered else name).lower() if letter.isalnum())
    if plain not in known:
        near = suggest(plain, known) or f"; dba3c games lists the {len(known) - len(FOR_TWO)} there are"
        raise ConfigError(f"{field}={shown(name)}: no such game in ale-py{near}")
    if known[plain] in FOR_TWO:
        raise ConfigError(
            f"{field}={shown(name)}: is for two players only, but an agent plays alone; choose another game"
        )
    return known[plain]


def rom_fingerprint(config: Env) -> dict[str, str]:
    return {f"the ROM of {config.game}": rom_checksum(config.game)}


def rom_checksum(game: str) -> str:
    return hashlib.sha256(Path(roms.get_rom_path(game)).read_bytes()).hexdigest()[:16]
