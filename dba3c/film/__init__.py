"""Films of an agent's episodes: frames of the emulator, a panel beside them, mp4 and gif files."""
