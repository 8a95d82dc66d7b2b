"""A step that fails or is interrupted leaves the model's values in the model, on JAX too.

While `fit`, `evaluate` or `predict` runs on JAX, Keras takes the values out of the variables and
hands them from step to step. It gives back what the last step returned. A first step that fails
returns nothing, so that all weights would be gone.
"""

import contextlib
import signal
import threading

import keras

NAMES = (
    "trainable_variables",
    "non_trainable_variables",
    "optimizer_variables",
    "metrics_variables",
)
# What a step of `fit`, of `evaluate` and of `predict` is given, by the number of its parts.
PARTS = {4: NAMES, 3: (NAMES[0], NAMES[1], NAMES[3]), 2: NAMES[:2]}


class KeptState:
    """Mixin of a `keras.Model`: what a step on JAX was given or has made is never let go.

    No copy is held: until a step is launched, its inputs are the values; from then on it owns
    their memory, and its results are. Both are kept where Keras looks for values to give back.
    A device error in a launched step loses them still: only a copy of everything, made anew each
    step, would help, and its price is a second model in memory. The error then says so.
    """

    def _get_jax_state(self, purge_model_variables=False, **which):
        state = super()._get_jax_state(purge_model_variables=False, **which)
        names = [name for name in NAMES if which.get(name)]
        _keep(self, dict(zip(names, state, strict=True)))
        if purge_model_variables:
            self._purge_model_variables(**{name: True for name in names})
        return state

    def _make_function(self, step_function, **kwargs):
        # Each single step, and not what `steps_per_execution` makes of several: the data of a
        # later one may be bad, when the first has already taken over the values.
        if keras.backend.backend() == "jax":
            step_function = _KeptStep(self, step_function)
        return super()._make_function(step_function, **kwargs)

    def jax_state_sync(self):
        kept = getattr(self, "_jax_state", None)
        if not kept or self._jax_state_synced:
            return
        alive = {name: part for name, part in kept.items() if not _any_deleted(part)}
        _keep(self, alive)
        super().jax_state_sync()
        if len(alive) < len(kept):
            _keep(self, {name: part for name, part in kept.items() if name not in alive})


@contextlib.contextmanager
def state_given_back(model):
    """Within the block whatever fails, Ctrl-C included, leaves the values in the model.

    Put it around Keras's `fit`, `evaluate`, `predict` and their likes. On PyTorch and TensorFlow
    the values never leave the variables, and nothing is to be done.

    Args:
        model: `keras.Model` with the mixin `KeptState`.
    """
    try:
        yield
    except BaseException as error:
        if keras.backend.backend() == "jax":
            model.jax_state_sync()
            if not model._jax_state_synced:
                error.add_note(
                    "The step failed on the device, when the memory of the weights was its own: "
                    "the model's weights are lost. Load those that were saved last."
                )
            _keep(model, None, synced=True)
        raise


class _KeptStep:
    def __init__(self, model, step):
        self.model, self.step = model, step

    def __call__(self, state, data):
        with _interrupt_later(lambda: any(_any_deleted(part) for part in state)):
            outputs, made = self.step(state, data)
            _keep(self.model, dict(zip(PARTS[len(made)], made, strict=True)))
        return outputs, made


@contextlib.contextmanager
def _interrupt_later(launched):
    """Let Ctrl-C wait for the end of the block once `launched()`; a second one does not wait.

    Python acts on a signal as soon as the launch returns, when nobody holds its results yet.
    """
    previous = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or not callable(previous):
        yield
        return
    waiting = []

    def handle(number, frame):
        if waiting or not launched():
            previous(number, frame)
        else:
            waiting.append(number)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if waiting:
        previous(waiting[0], None)


def _any_deleted(values):
    return any(getattr(value, "is_deleted", bool)() for value in values)


def _keep(model, state, synced=False):
    # Past Keras's tracking of attributes, which would look at every single array.
    object.__setattr__(model, "_jax_state", state)
    object.__setattr__(model, "_jax_state_synced", synced)
