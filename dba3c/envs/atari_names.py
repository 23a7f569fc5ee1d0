"""Names and ROMs of ale-py's games."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ale_py import roms

from dba3c.config.messages import ConfigError, shown, suggest

FOR_TWO = ("combat", "joust", "maze_craze", "warlords")  # the emulator would end the process


def resolve_game(name: str, field: str) -> str:
    """ale-py's name of a game that may be written Breakout, SpaceInvaders, space-invaders, …"""
    games = {game.replace("_", ""): game for game in roms.get_all_rom_ids()}
    plain = "".join(letter for letter in name.lower() if letter.isalnum())
    if plain not in games:
        near = suggest(plain, games) or f"; {len(games)} games are known, among them breakout, pong, space_invaders"
        raise ConfigError(f"{field}={shown(name)}: no such game in ale-py{near}")
    if games[plain] in FOR_TWO:
        raise ConfigError(f"{field}={shown(name)}: is for two players only, and an agent is one; choose another game")
    return str(games[plain])


def rom_checksum(game: str) -> str:
    return hashlib.sha256(Path(roms.get_rom_path(game)).read_bytes()).hexdigest()[:16]
