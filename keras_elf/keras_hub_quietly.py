"""keras_hub, imported without what TensorFlow says about itself.

keras_hub loads TensorFlow where it is installed, whatever the backend, and TensorFlow's C++ part
writes notices to the process's standard error before any setting of its own counts. All of the
package takes `keras_hub` from here.
"""

import contextlib
import os
import sys
import tempfile

import keras


@contextlib.contextmanager
def standard_error_kept():
    """Keep back what the process writes to standard error; after an exception it is shown."""
    try:
        sys.stderr.flush()
        number = sys.stderr.fileno()
        shown = os.dup(number)
    except (AttributeError, OSError, ValueError):
        # There is no such stream, or it is none of the operating system's.
        yield
        return
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), number)
        try:
            yield
        except BaseException:
            os.dup2(shown, number)
            kept.seek(0)
            with contextlib.suppress(OSError):
                os.write(number, kept.read())
            raise
        finally:
            os.dup2(shown, number)
            os.close(shown)


if keras.backend.backend() == "tensorflow" or "tensorflow" in sys.modules:
    import keras_hub
else:
    with standard_error_kept():
        import keras_hub

        tensorflow = sys.modules.get("tensorflow")
        if tensorflow is not None:
            # It looks for devices when it first computes, and tells what it does not find.
            tensorflow.config.list_physical_devices()

__all__ = ["keras_hub"]
