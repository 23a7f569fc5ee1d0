"""Films as files: mp4 to watch, gif to embed in a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

import numpy as np
from PIL import Image

from dba3c.film.panel import FRAMES_PER_SECOND, MOST_HEIGHT, Shot, magnification, panels
from dba3c.types import Array

PANEL_GRAYS = 64  # shades of a gif's panel; the other 192 of its 256 colours are left to the game
GAME_COLOURS = 256 - PANEL_GRAYS
GIF_DELAYS = (30, 30, 40)  # milliseconds, in turn: 30 frames/s, as a gif counts in hundredths of a second
GIF_PANEL_STEPS = 5  # steps between two drawings of the panel, as a gif stores every pixel that changes


def write_mp4(file: Path, shots: Iterable[Shot], scale: int = 3) -> None:
    """Write H.264 that every browser plays, at the emulator's pace; no file if there are no shots."""
    import imageio_ffmpeg

    draw = panels(scale)
    frames = (beside(magnified(shot.picture, scale), draw(shot)) for shot in shots)
    first = next(frames, None)
    if first is None:
        return
    encoder = imageio_ffmpeg.write_frames(
        str(file),
        first.shape[1::-1],
        fps=FRAMES_PER_SECOND,
        quality=None,  # the rate follows from -crf
        macro_block_size=2,
        output_params=["-crf", "20", "-preset", "veryfast", "-movflags", "+faststart"],
    )
    encoder.send(None)
    with closing(encoder):
        for frame in chain([first], frames):
            encoder.send(frame)


def write_gif(file: Path, shots: Iterable[Shot], scale: int = 2) -> None:
    """Write half the frames, each the brighter of two, so that flickering objects stay visible."""
    pairs = list(paired(map(halved, shots)))
    if not pairs:
        return
    colours, indices = few_colours(np.stack([shot.picture for shot in pairs]))
    draw = panels(scale, GIF_PANEL_STEPS)
    grays = np.linspace(0, 255, PANEL_GRAYS).astype(np.uint8)
    palette = np.concatenate([colours, np.repeat(grays[:, np.newaxis], 3, axis=1)])

    def images() -> Iterator[Image.Image]:
        for shot, index in zip(pairs, indices, strict=True):
            panel = len(colours) + draw(shot) // (256 // PANEL_GRAYS)
            image = Image.fromarray(np.concatenate([magnified(index, scale), panel.astype(np.uint8)], axis=1))
            image.putpalette(palette.tobytes())
            yield image

    first, *rest = images()
    delays = [GIF_DELAYS[number % len(GIF_DELAYS)] for number in range(len(pairs))]
    first.save(file, save_all=True, append_images=rest, duration=delays, loop=0, optimize=False)


def halved(shot: Shot) -> Shot:
    """Take every second row and column of a large picture: a gif stores every pixel that changes."""
    return shot._replace(picture=shot.picture[::2, ::2]) if shot.picture.shape[0] > MOST_HEIGHT else shot


def paired(shots: Iterable[Shot]) -> Iterator[Shot]:
    """Merge every two frames into the brighter of both, pixel by pixel; an odd last frame stays as it is."""
    previous: Shot | None = None
    for shot in shots:
        if previous is None:
            previous = shot
        else:
            yield shot._replace(picture=np.maximum(previous.picture, shot.picture))
            previous = None
    if previous is not None:
        yield previous


def few_colours(pictures: Array) -> tuple[Array, Array]:
    """Return colours [n, 3], at most GAME_COLOURS, and each pixel's index; exact unless there are too many."""
    packed = pictures.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)  # [frames, height, width]
    unique, inverse = np.unique(packed, return_inverse=True)
    colours = np.stack([unique >> 16, unique >> 8 & 255, unique & 255], axis=1).astype(np.uint8)
    if len(colours) <= GAME_COLOURS:
        return colours, inverse.reshape(packed.shape).astype(np.uint8)
    strip = Image.fromarray(colours[np.newaxis]).quantize(GAME_COLOURS, dither=Image.Dither.NONE)
    found = np.array(strip.getpalette(), np.uint8).reshape(-1, 3)[:GAME_COLOURS]
    return found, np.asarray(strip)[0][inverse.reshape(packed.shape)]


def magnified(picture: Array, scale: int) -> Array:
    times = magnification(picture, scale)
    return picture.repeat(times, axis=0).repeat(times, axis=1)


def beside(picture: Array, panel: Array) -> Array:
    """Join picture and panel; H.264 halves the resolution of colours, so height and width are padded to be even."""
    frame = np.concatenate([picture, np.repeat(panel[:, :, np.newaxis], 3, axis=2)], axis=1)
    return np.ascontiguousarray(np.pad(frame, ((0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0))))
