"""One process at a time, and word of what the others wait for."""

import contextlib
import logging

import filelock

logger = logging.getLogger("keras_elf")
# Long enough not to fill a log, short enough that nobody believes the program is stuck.
REMINDER_SECONDS = 60


@contextlib.contextmanager
def locked(path, doing):
    """Hold the lock file `path`; say once a minute what is being waited for.

    The operating system frees the lock when its holder ends, however it ends.

    Args:
        path: str. The lock file, in a directory that exists.
        doing: str. What the holder does, as in `"downloading model.safetensors"`.
    """
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        logger.warning("Waiting for another process that is %s (lock: %s)", doing, path)
        while not lock.is_locked:
            try:
                lock.acquire(timeout=REMINDER_SECONDS)
            except filelock.Timeout:
                logger.warning("Still waiting: another process is %s (lock: %s)", doing, path)
    try:
        yield
    finally:
        lock.release()
