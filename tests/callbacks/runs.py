"""A tiny conditional run with every source of randomness, and what it looks like from inside."""

import keras
import numpy as np

from keras_elf.data import TokenBatches
from keras_elf.objectives import ELFObjective
from keras_elf.optimizers import AdamW, WarmupSchedule
from keras_elf.training.callbacks.fit_callback import synchronise
from tests.models import small

BATCHES = 5
# Dropout is in the middle half of the blocks. Four of them are cheap where nothing compiles.
DROPOUT = {"depth": 4, "dropout": 0.1, "attention_dropout": 0.1}
NETWORK = {"hidden_size": 8, **(DROPOUT if small.BACKEND == "torch" else {})}


class Curve(keras.callbacks.Callback):
    """Losses of each step, and the running means that Keras shows, all to the last bit."""

    def __init__(self, stop_after=None, error=None):
        super().__init__()
        self.steps, self.means, self.stop_after, self.error = [], [], stop_after, error

    def on_train_batch_end(self, batch, logs=None):
        synchronise(self.model)
        self.steps.append(small.values([self.model.step_report.values])[0][:3].tolist())
        # As text: a mean of nothing measured is NaN, which differs from itself.
        self.means.append([float(logs[n]).hex() for n in ("loss", "denoise_loss", "decode_loss")])
        if len(self.steps) == self.stop_after:
            if self.error is not None:
                raise self.error
            self.model.stop_training = True


def generator():
    """With dropout and label drop, so that each seed generator counts."""
    model = small.generator(
        "gaussian",
        network=NETWORK,
        # One pass of the network a step, and no Newton-Schulz: both cost much compilation.
        objective=ELFObjective(self_conditioning_probability=0),
        label_drop_probability=0.4,
        num_steps=2,
    )
    small.enliven(model, 0.1)
    optimizer = AdamW(WarmupSchedule(1e-2, warmup_steps=6), ema_momentum=0.8)
    model.compile(optimizer=optimizer, jit_compile=small.BACKEND == "jax")
    return model


def rows():
    """More rows than fill the batches, some of them with a condition."""
    found = small.rows(BATCHES * small.BATCH + 2)
    found["is_cond"] = np.array(found["is_cond"])
    found["is_cond"][::2, :2] = True
    return found


class Shared:
    """A model that compiles once, and can be set back to where it was built."""

    def __init__(self):
        self.model, self.rows = generator(), rows()
        self.model.optimizer.build(self.model.trainable_variables)
        self.start = small.values(self.variables())

    def variables(self):
        model = self.model
        return [*model.variables, *model.optimizer.variables, *model.metrics_variables]

    def reset(self):
        for variable, value in zip(self.variables(), self.start, strict=True):
            variable.assign(value)
        self.model._data_epoch = 0
        _seed_dropout(0)

    def forget(self):
        """What a new process would not know: nothing is where it was."""
        rng = np.random.default_rng(0)
        for variable in self.variables():
            value = rng.integers(1, 100, variable.shape)
            variable.assign(np.asarray(value).astype(small.values([variable])[0].dtype))
        self.model._data_epoch = 0
        _seed_dropout(1)

    def fit(self, callbacks=(), x=None, epochs=2, **kwargs):
        x = self.rows if x is None else x
        if isinstance(x, dict):
            kwargs.setdefault("batch_size", small.BATCH)
        return self.model.fit(x, epochs=epochs, callbacks=[*callbacks], verbose=0, **kwargs)

    def state(self):
        return small.values([*self.model.variables, *self.model.optimizer.variables])

    def batches(self, **kwargs):
        return TokenBatches(self.rows, small.BATCH, **kwargs)


class Poison(keras.callbacks.Callback):
    """Makes a variable NaN after so many batches, in the middle of `fit`."""

    def __init__(self, after, variable):
        super().__init__()
        self.after, self.variable, self.seen = after, variable, 0

    def on_train_batch_begin(self, batch, logs=None):
        if self.seen == self.after:
            synchronise(self.model)
            self.variable.assign(np.full(self.variable.shape, np.nan, "float32"))
        self.seen += 1


def _seed_dropout(seed):
    # PyTorch's own generator draws it.
    if small.BACKEND == "torch":
        keras.utils.set_random_seed(seed)
