"""A text encoder that is made when it is first needed."""

import concurrent.futures
import contextlib
import threading

import keras


class DeferredEncoder:
    """Stands for a frozen `TextEncoder` that has not been loaded yet.

    Text is written without an encoder: only training, conditions and `encode` need one. So a
    model from a preset holds this until then. It is not a layer and has no variables.

    Args:
        serialized: dict. The encoder as `keras.saving.serialize_keras_object` gives it.
        make: callable without arguments that returns the encoder with its weights.
        source: where the weights are, for whoever saves the model; see
            `keras_elf.presets.encoder_source`.
    """

    frozen = True

    def __init__(self, serialized, make, source=None):
        self.serialized = serialized
        self.source = source
        self.latent_dim = serialized["config"]["latent_dim"]
        self.vocabulary_size = serialized["config"]["vocabulary_size"]
        self._make = make
        self._lock = threading.RLock()
        self._left = threading.local()
        self._encoder = None

    @property
    def class_name(self):
        """str. Name of the encoder's class."""
        return self.serialized["class_name"]

    @contextlib.contextmanager
    def left_unloaded(self):
        """Within the block, in this thread, nobody who looks for the encoder has it loaded."""
        before, self._left.value = self.is_left, True
        try:
            yield
        finally:
            self._left.value = before

    @property
    def is_left(self):
        """Whether this thread is within `left_unloaded`."""
        return getattr(self._left, "value", False)

    def attaching(self):
        """A lock for whoever puts the loaded encoder in this one's place."""
        return self._lock

    def load(self):
        """The encoder. Several threads get the same one."""
        with self._lock:
            if self._encoder is None:
                # The call may come from inside a step that is being traced. A thread of its
                # own knows nothing of that, so its variables are real ones.
                with concurrent.futures.ThreadPoolExecutor(1, "keras_elf_encoder") as pool:
                    distribution = keras.distribution.distribution()
                    self._encoder = pool.submit(self._in_thread, distribution).result()
            return self._encoder

    def _in_thread(self, distribution):
        if distribution is not None:
            # Keras keeps it by thread.
            keras.distribution.set_distribution(distribution)
        return self._make()
