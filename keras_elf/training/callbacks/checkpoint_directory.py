"""A directory of checkpoints that one run at a time may use."""

import pathlib

import filelock

from keras_elf.training.callbacks import archive
from keras_elf.version import __version__

FORMAT = 1
SUFFIX = ".checkpoint"
MANIFEST = ("step", "position", "settings", "data", "history")


class CheckpointDirectory:
    """Reads, writes and prunes the checkpoints of a directory.

    Args:
        path: path of the directory, which need not be there yet.
    """

    def __init__(self, path):
        self.path, self._lock = path, None

    def checkpoints(self):
        """Paths of the checkpoints there are, oldest first."""
        return sorted(self.path.glob(f"step-*{SUFFIX}")) if self.path.is_dir() else []

    def newest_number(self):
        """Number by which the newest checkpoint was written; -1 without one."""
        found = self.checkpoints()
        return int(found[-1].name[len("step-") : -len(SUFFIX)]) if found else -1

    def acquire(self):
        """Make the directory, keep other runs out, and clear away what a killed run left."""
        self.path.mkdir(parents=True, exist_ok=True)
        # The system lets go of it when a process dies, however it dies.
        lock = filelock.FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            raise ValueError(
                f"Another run is using `directory` {self.path}. Wait for it, or use another."
            ) from None
        self._lock = lock
        for left_over in self.path.glob(f".step-*{SUFFIX}.*.tmp"):
            left_over.unlink(missing_ok=True)

    def release(self):
        """Let other runs in."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def write(self, number, manifest, arrays, keep):
        """Write a checkpoint, then remove all but the `keep` newest; returns its path."""
        path = self.path / f"step-{number:010d}{SUFFIX}"
        archive.write(path, {"format": FORMAT, **manifest}, arrays)
        for old in self.checkpoints()[:-keep]:
            old.unlink(missing_ok=True)
        return path

    def read(self, path=None):
        """`(path, manifest, arrays)` of a checkpoint, by default the newest.

        Raises:
            ValueError: if there is none, or it is damaged or of a newer version.
        """
        found = self.checkpoints()
        if path is None and not found:
            raise ValueError(f"There is no checkpoint in {self.path}.")
        path = found[-1] if path is None else pathlib.Path(path)
        try:
            return path, *_read(path)
        except archive.Damaged as error:
            others = [other for other in found if other != path]
            hint = f" To go on from {others[-1]} instead, move it away." if others else ""
            raise ValueError(f"{error}.{hint}") from None


def _read(path):
    # The version first: what a newer one writes need not be readable.
    manifest = archive.read_manifest(path)
    number = manifest.get("format")
    if not isinstance(number, int):
        raise archive.Damaged(f"{path} is damaged: its manifest has no format")
    if number > FORMAT:
        raise ValueError(
            f"{path} was written by a newer keras_elf ({manifest.get('keras_elf')}; this is "
            f"{__version__}). Update keras_elf to read it."
        )
    manifest, arrays = archive.read(path)
    missing = [name for name in MANIFEST if name not in manifest]
    if missing:
        raise archive.Damaged(f"{path} is damaged: its manifest lacks {missing}")
    return manifest, arrays
