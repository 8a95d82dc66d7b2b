"""The hooks of `ELFGenerator.fit`: what a callback may do around a run and between its steps."""

import keras


class FitCallback(keras.callbacks.Callback):
    """A callback that knows the run it is in: what all callbacks of this package are made of.

    Beside Keras's own methods a subclass may define, all of them optional,

    - `before_fit(run)`: before Keras starts. It may change the run's data and settings, and
      raise where something does not fit;
    - `after_step(before, step)`: between two training steps, with the number of optimizer steps
      at the last call and now (equal numbers of batches are several calls apart where gradients
      are accumulated). It must not read from the device unless it is due, since the host then
      waits for the device;
    - `before_validation(run)`: before the validation of an epoch;
    - `after_fit(run)`: when `fit` ends, also by an exception.

    Whoever overrides Keras's `on_train_begin`, `on_train_batch_begin` or `on_epoch_end` calls
    the same of `super()`. `on_train_batch_end` is better left alone: Keras then fetches the
    losses after every step.

    ```python
    class Budget(keras_elf.callbacks.FitCallback):
        '''Ends a run, without its last validation, when its time is up.'''

        def before_fit(self, run):
            self.end = time.monotonic() + 3600

        def after_step(self, before, step):
            if time.monotonic() > self.end:
                self.run.stop(skip_validation=True)
    ```

    Attributes:
        run: `keras_elf.training.FitRun` while `fit` runs, else `None`.
        needs_position: bool. Whether the data must be such that their position can be set.
            Class attribute, defaults to `False`.
    """

    run = None
    needs_position = False

    @property
    def clock(self):
        """`keras_elf.training.RunClock` of the run: its epoch, batch and step."""
        return self.run.clock

    def before_fit(self, run):
        """See the class."""

    def after_step(self, before, step):
        """See the class."""

    def before_validation(self, run):
        """See the class."""

    def after_fit(self, run):
        """See the class."""

    def on_train_begin(self, logs=None):
        if self.run is None:
            raise ValueError(
                f"`{type(self).__name__}` works in `ELFGenerator.fit` alone, which must get its "
                f"callbacks as a list. Received a model of type {type(self.model).__name__}"
            )
        self._step = self.clock.step

    def on_train_batch_begin(self, batch, logs=None):
        self._arrive()

    def on_epoch_end(self, epoch, logs=None):
        self._arrive()

    def _arrive(self):
        before, self._step = self._step, self.clock.step
        if self._step > before:
            self.after_step(before, self._step)


def is_due(every, before, step):
    """Whether a multiple of `every` lies after `before` and not after `step`."""
    return every is not None and step // every > before // every


def synchronise(model):
    """Have the model's variables hold the newest values, also in the middle of `fit` on JAX."""
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()
