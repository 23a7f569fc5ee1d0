"""Films as files: every frame, at normal speed, in the true colours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from dba3c.film.encoders import GAME_COLOURS, few_colours, write_gif, write_mp4
from dba3c.film.panel import PANEL_WIDTH, Shot


def shots(count: int, colours: int = 6, height: int = 21) -> list[Shot]:
    draw = np.random.default_rng(0)
    palette = draw.integers(256, size=(colours, 3)).astype(np.uint8)
    pictures = palette[draw.integers(colours, size=(count, height, 16))]
    return [Shot(picture, "a game", "game 1", float(n // 8), n // 4, [0.1 * n]) for n, picture in enumerate(pictures)]


def test_an_mp4_has_every_frame_at_normal_speed(tmp_path: Path) -> None:
    file = tmp_path / "film.mp4"
    write_mp4(file, iter(shots(90)))
    reader = imageio_ffmpeg.read_frames(str(file))
    facts = next(reader)
    assert (facts["codec"], facts["fps"], facts["pix_fmt"][:7]) == ("h264", 60.0, "yuv420p")
    assert facts["size"] == (3 * (16 + PANEL_WIDTH), 64)  # 63 rows are one too few for H.264
    assert sum(1 for _ in reader) == 90


def test_a_gif_has_half_the_frames_in_the_true_colours(tmp_path: Path) -> None:
    file, played = tmp_path / "film.gif", shots(61, height=105)
    write_gif(file, iter(played))
    images = list(frames_of(file))
    assert sum(delay for _, delay in images) == pytest.approx(61 / 60 * 1000, abs=40)
    shown = images[5][0][::2, : 2 * 16 : 2]
    np.testing.assert_array_equal(shown, np.maximum(played[10].picture, played[11].picture))
    assert len({picture[:, 32:].tobytes() for picture, _ in images}) >= 7  # the panel changes with the score


def frames_of(file: Path) -> Iterator[tuple[Any, float]]:
    with Image.open(file) as image:
        for number in range(image.n_frames):
            image.seek(number)
            yield np.asarray(image.convert("RGB")), image.info["duration"]


def test_too_many_colours_become_near_ones() -> None:
    pictures = np.stack([shot.picture for shot in shots(20, colours=500)])
    colours, indices = few_colours(pictures)
    assert len(colours) <= GAME_COLOURS
    assert np.abs(colours[indices].astype(int) - pictures).mean() < 12
