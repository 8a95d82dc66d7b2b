"""Work ahead of the consumer in a background thread."""

import queue
import threading

from keras_elf import checks

_END = object()


def prefetch(iterable, buffer_size=2):
    """Iterate in a background thread, a few items ahead.

    The order stays. An exception of the iterable is raised where its item would have come. The
    thread ends when the generator does: exhausted, closed, or no longer referred to.

    Args:
        iterable: any iterable.
        buffer_size: int. How many items may wait. Defaults to `2`.

    Yields:
        The items of the iterable.
    """
    buffer_size = checks.integer("buffer_size", buffer_size, minimum=1)
    return _consume(iterable, buffer_size)


def _consume(iterable, buffer_size):
    items, stopped = queue.Queue(buffer_size), threading.Event()
    thread = threading.Thread(
        target=_produce, args=(iterable, items, stopped), name="keras-elf-prefetch", daemon=True
    )
    thread.start()
    try:
        while True:
            item, error = items.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        stopped.set()
        while thread.is_alive():
            # It may be waiting for room.
            try:
                items.get_nowait()
            except queue.Empty:
                pass
            thread.join(timeout=0.01)


def _produce(iterable, items, stopped):
    try:
        for item in iterable:
            if stopped.is_set():
                return
            items.put((item, None))
        items.put((_END, None))
    except BaseException as error:  # whatever it is, it belongs to the consumer
        items.put((None, error))
    finally:
        if hasattr(iterable, "close"):
            iterable.close()
