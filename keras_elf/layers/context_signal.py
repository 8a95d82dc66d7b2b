"""What every context signal is: a layer from one value a row to tokens."""

import keras
import numpy as np
from keras import ops

from keras_elf import checks


@keras.saving.register_keras_serializable(package="keras_elf")
class ContextSignal(keras.layers.Layer):
    """Base of the layers that turn one value a row into tokens before the text.

    A signal of one's own names the value it reads and makes the tokens. Here the length that
    a text is to have, as three tokens:

    ```python
    @keras.saving.register_keras_serializable(package="mine")
    class LengthSignal(keras_elf.layers.ContextSignal):
        key, empty, value_dtype = "length", 0, "int32"

        def build(self, value_shape=None):
            self.table = self.add_weight((65, self.num_tokens * self.width), name="table")
            self.built = True

        def call(self, value):
            rows = keras.ops.take(self.table, keras.ops.minimum(value, 64), axis=0)
            return keras.ops.reshape(rows, (-1, self.num_tokens, self.width))

    context = [TimeSignal(), ScaleSignal(), ModeSignal(), LengthSignal(num_tokens=3)]
    x, prefix_length = ContextPrefix(768, signals=context)(x, t, signals={"length": lengths})
    ```

    A network built with such a list, `ELFBackbone(..., context_signals=context)`, takes the
    value as `hidden_states(..., signals={"length": lengths})`.

    Attributes:
        key: str. Name of the value: `"t"`, `"guidance_scale"` and `"decode"` are those that
            every network is given, any other name is an extra value of the user's.
        empty: number that stands for no value. `None`: without a value there are no tokens.
        value_dtype: str. The dtype in which `call` gets the value. Defaults to `"float32"`.
        width: int. Width of the tokens, known once the signal is part of a `ContextPrefix`.

    Args:
        num_tokens: int. Tokens put before the text. Defaults to `4`.
        hidden_size: int or `None`. Width of the tokens; `None` takes that of the
            `ContextPrefix`. Defaults to `None`.
        key: str. Another name for the value, so that two signals of one class can stand side
            by side. Defaults to the class's.
        dtype: dtype policy. Defaults to `"float32"`: 8 bits tell neighbouring numbers no
            longer apart.

    Call arguments:
        value: tensor, array or list `(rows,)`, or a scalar for one row. `call` always gets a
            tensor `(rows,)` of `value_dtype`.

    Returns:
        Tensor `(rows, num_tokens, width)`.

    Raises:
        ValueError: for a value of another rank, a broken number where whole ones are read,
            or values that `check` refuses.
    """

    key = None
    empty = None
    value_dtype = "float32"

    def __init__(self, num_tokens=4, hidden_size=None, key=None, dtype="float32", **kwargs):
        key = type(self).key if key is None else key
        if not isinstance(key, str) or not key.isidentifier():
            raise ValueError(
                f"`key` of {type(self).__name__} must be the name of the value it reads, such as "
                f"'label'. Received: {key!r}"
            )
        # The name is part of the variables' paths: the same in every process.
        kwargs["name"] = kwargs.get("name") or key
        super().__init__(autocast=False, dtype=dtype, **kwargs)
        self.key = key
        self.num_tokens = checks.integer("num_tokens", num_tokens, minimum=1)
        if hidden_size is not None:
            hidden_size = checks.integer("hidden_size", hidden_size, minimum=1)
        self.hidden_size = self._width = hidden_size
        self._in_a_prefix = False

    @property
    def width(self):
        """Width of the tokens; raises `ValueError` while nobody has said it."""
        if self._width is None:
            raise ValueError(
                f"The {type(self).__name__} {self.name!r} does not know the width of its tokens. "
                "Pass `hidden_size`, or use it as one of the `signals` of a ContextPrefix"
            )
        return self._width

    def join(self, hidden_size):
        """Become part of one `ContextPrefix` of this width, which calls this.

        Raises:
            ValueError: if the signal has another width or is part of another prefix, with
                which it would share its weights.
        """
        if self.hidden_size not in (None, hidden_size):
            raise ValueError(
                f"The signal {self.key!r} has hidden_size={self.hidden_size}, and its "
                f"ContextPrefix hidden_size={hidden_size}"
            )
        if self._in_a_prefix or self.built:
            raise ValueError(
                f"The signal {self.key!r} is in use already. Make a new {type(self).__name__} for "
                "each ContextPrefix"
            )
        self._width, self._in_a_prefix = hidden_size, True

    def check(self, values):
        """Raise `ValueError` for values out of range; a signal of one's own may override it.

        It sees numbers, lists and NumPy arrays before anything is compiled. Values that are
        tensors of the backend already may be on an accelerator or have no values yet, and are
        not looked at.

        Args:
            values: NumPy array `()` or `(rows,)`.
        """

    def rows(self, value):
        """`value` as a tensor `(rows,)` of `value_dtype`, checked as far as it can be seen."""
        if _is_on_host(value):
            value = np.asarray(value)
            self._check_form(value.shape, value.dtype.name)
            self.check(value)
        else:
            self._check_form(value.shape, keras.backend.standardize_dtype(value.dtype))
        if isinstance(value, keras.KerasTensor):
            return value
        value = ops.cast(value, self.value_dtype)
        return value if len(value.shape) else ops.reshape(value, (1,))

    def _check_form(self, shape, dtype):
        if len(shape) > 1:
            raise ValueError(
                f"`{self.key}` must be one value a row, (rows,), or a scalar. Received shape: "
                f"{tuple(shape)}"
            )
        if "int" in self.value_dtype and "int" not in dtype:
            raise ValueError(f"`{self.key}` must be whole numbers. Received dtype: {dtype}")

    def __call__(self, value, **kwargs):
        return super().__call__(self.rows(value), **kwargs)

    def compute_output_spec(self, value):
        shape = (value.shape[0], self.num_tokens, self.width)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    @classmethod
    def parameter_count(cls, width, num_tokens=4, **_):
        """Number of weights of a signal with this configuration, without building it.

        A preset's size is looked at before it is built. Override it where a signal has more
        than a row of weights a token.

        Args:
            width: int. Width of the `ContextPrefix`.
            num_tokens: int. See above.
            **_: the rest of the configuration.
        """
        return num_tokens * width

    def get_config(self):
        return {
            **super().get_config(),
            "num_tokens": self.num_tokens,
            "hidden_size": self.hidden_size,
            "key": self.key,
        }


def _is_on_host(value):
    return isinstance(value, (bool, int, float, list, tuple, np.ndarray, np.generic))
