"""ELF's preprocessor: text or token ids to rows for the model, sampled rows back to text."""

import os

import keras
import numpy as np

from keras_elf import checks
from keras_elf.data.decode import decode_texts
from keras_elf.data.encode import (
    check_trained,
    encode_texts,
    special_token_ids,
    to_token_ids,
    warn_if_cut,
)
from keras_elf.data.rows import (
    PAD_WITH,
    TOKEN_KEYS,
    check_lengths,
    check_token_ids,
    make_rows,
)
from keras_elf.keras_hub_quietly import keras_hub
from keras_elf.models.tokenizer import check_tokenizer, load_transformers_tokenizer
from keras_elf.presets import safety
from keras_elf.presets.resolution import local_directory


@keras.saving.register_keras_serializable(package="keras_elf")
class ELFPreprocessor(keras_hub.models.Preprocessor):
    """Turns text into the rows of token ids that ELF trains on, and sampled rows into text.

    A row holds an optional condition, the target behind it, an end token and padding (see
    `keras_elf.data.make_rows`). Results are NumPy arrays on every backend, always batched, and
    TensorFlow is not needed. As it works on Python strings, it cannot be traced into a `tf.data`
    graph: encode the text first.

    Args:
        tokenizer: a `keras_hub.tokenizers.Tokenizer` with `<pad>` and `</s>`, usually
            `keras_hub.models.T5Tokenizer`.
        sequence_length: int. Number of tokens in a row, condition and target together.
        condition_length: int. Most tokens that a condition may take. Defaults to `None`: all of
            the row but one.
        pad_with: `"pad"` or `"end"`. The token that fills up a row. Published ELF pads with the
            end token for conditional tasks, which teaches the model where to stop. Defaults to
            `"pad"`.
        add_end_token: bool. Whether an end token follows each target that was not cut. Defaults
            to `True`.
        vocabulary_size: int. Size of the space of ids, where it is larger than the tokenizer's
            (T5's 100 sentinel ids have no piece); ids beyond the tokenizer's decode to nothing.
            Defaults to `None`: the tokenizer's size.
        **kwargs: `name`, `dtype`, `trainable` and `config_file` of
            `keras_hub.models.Preprocessor`.

    Call arguments:
        x: the texts. Either str or list of str; or token ids in their place (sequences of int, or
            an int array whose trailing padding is dropped); or a dict with `"target"` and
            `"condition"`, each in one of these forms; or rows that are ready, a dict with
            `"token_ids"`, `"is_cond"`, `"is_valid"` and optionally `"segments"`, which are
            passed on.

    A call returns a dict of arrays of shape `(texts, sequence_length)`: `token_ids` (int32),
    `is_cond` (bool) and `is_valid` (bool). Texts that are too long are cut, with a `UserWarning`
    that says how many. Empty texts, other types and ids out of range raise `ValueError`.

    Example:

    ```python
    proto = keras_elf.data.train_sentencepiece(texts, vocabulary_size=2048)
    tokenizer = keras_hub.models.T5Tokenizer(proto=proto)
    preprocessor = ELFPreprocessor(tokenizer, sequence_length=64, condition_length=32)
    preprocessor(["a text", "another"])
    preprocessor({"condition": ["eine Frage"], "target": ["an answer"]})
    ```
    """

    tokenizer_cls = keras_hub.models.T5Tokenizer

    def __init__(
        self,
        tokenizer,
        sequence_length,
        condition_length=None,
        pad_with="pad",
        add_end_token=True,
        vocabulary_size=None,
        **kwargs,
    ):
        allowed = ("name", "dtype", "trainable", "config_file")
        checks.no_unknown("ELFPreprocessor", kwargs, allowed)
        check_tokenizer(tokenizer)
        super().__init__(**kwargs)
        self.tokenizer = tokenizer
        self.sequence_length, self.condition_length = check_lengths(
            sequence_length, condition_length
        )
        self.pad_with = checks.choice("pad_with", pad_with, PAD_WITH)
        self.add_end_token = bool(add_end_token)
        if vocabulary_size is not None:
            checks.integer("vocabulary_size", vocabulary_size, minimum=1)
        self._vocabulary_size = vocabulary_size

    @property
    def pad_token_id(self):
        """Id of the padding token."""
        return special_token_ids(self.tokenizer)[0]

    @property
    def end_token_id(self):
        """Id of the end token."""
        return special_token_ids(self.tokenizer)[1]

    @property
    def trained(self):
        """Whether the tokenizer has a vocabulary."""
        return getattr(self.tokenizer, "proto", True) is not None

    @property
    def vocabulary_size(self):
        """Size of the space of ids, which the model's output must have."""
        check_trained(self.tokenizer)
        size = int(self.tokenizer.vocabulary_size())
        if self._vocabulary_size is None:
            return size
        return checks.integer("vocabulary_size", self._vocabulary_size, minimum=size)

    def __call__(self, x, y=None, sample_weight=None, **kwargs):
        # Keras's own `__call__` visits every leaf of its arguments: here, every single id.
        kwargs.pop("training", None)
        return self.call(x, y=y, sample_weight=sample_weight, **kwargs)

    def call(self, x, y=None, sample_weight=None):
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise ValueError(
                    f"`{name}` must not be given: ELF's targets are the texts themselves, all of "
                    'one weight. For pairs pass `x={"condition": ..., "target": ...}`.'
                )
        return self._rows(x)

    def generate_preprocess(self, conditions):
        """Rows to generate a text from: a condition each, everything behind it open.

        Args:
            conditions: str, list of str, or token ids in their place. None may be empty.

        Returns:
            A dict as from a call, with `is_valid` `True` everywhere.
        """
        ids = self._ids("conditions", conditions)
        rows, number_cut = make_rows(
            [[]] * len(ids),
            ids,
            sequence_length=self.sequence_length,
            condition_length=self.condition_length,
            pad_id=self.pad_token_id,
            end_id=self.end_token_id,
            pad_with=self.pad_with,
            add_end_token=False,
        )
        warn_if_cut(number_cut, len(ids), self.sequence_length, self.condition_length)
        rows["is_valid"][:] = True
        return rows

    def generate_postprocess(self, token_ids, is_cond=None):
        """Sampled rows as text: the condition dropped, cut at the first end token.

        Args:
            token_ids: int array or tensor of shape `(rows, length)`.
            is_cond: bool array or tensor of the same shape. The condition at the start of each
                row. Defaults to `None`: there is none.

        Returns:
            A list of str, one a row.
        """
        return decode_texts(
            token_ids, self.tokenizer, is_cond, vocabulary_size=self.vocabulary_size
        )

    def get_config(self):
        return {
            **super().get_config(),
            "sequence_length": self.sequence_length,
            "condition_length": self.condition_length,
            "pad_with": self.pad_with,
            "add_end_token": self.add_end_token,
            "vocabulary_size": self._vocabulary_size,
        }

    def save_to_preset(self, preset_dir):
        """Save the configuration and the vocabulary to a preset directory.

        Args:
            preset_dir: str or path. Made if it does not exist.
        """
        check_trained(self.tokenizer)
        super().save_to_preset(os.fspath(preset_dir))

    @classmethod
    def from_preset(cls, preset, config_file="preprocessor.json", **kwargs):
        """Load a preprocessor from a preset.

        A local directory needs no more than the preprocessor's own files, so one may be shipped
        without a model. For the name of a published model the vocabulary is downloaded once.

        Args:
            preset: str or path. A directory, the name of a preset (`"elf_b_owt"`), or a handle.
            config_file: str. Name of the configuration in it. Defaults to `"preprocessor.json"`.
            **kwargs: arguments of the constructor that replace the saved ones.
        """
        preset = local_directory(preset, load_weights=False)
        if "://" in preset:
            return super().from_preset(preset, config_file=config_file, **kwargs)
        path = os.path.join(preset, config_file)
        if not os.path.isfile(path):
            raise ValueError(
                f"`preset` must be a directory with a saved preprocessor. Received: {preset!r}, "
                f"which has no file {config_file!r}"
            )
        config = safety.read_json(preset, config_file)
        found = config.get("registered_name")
        if found != keras.saving.get_registered_name(cls):
            raise ValueError(
                f"`preset` {preset!r} holds {found!r}, where {cls.__name__} was asked for."
            )
        config["config"] = {**config.get("config", {}), **kwargs}
        preprocessor = keras.saving.deserialize_keras_object(config)
        try:
            preprocessor.load_preset_assets(preset)
        except Exception as error:  # each tokenizer library has errors of its own
            raise ValueError(
                f"The vocabulary in `preset` {preset!r} is missing or damaged: {error}"
            ) from error
        return preprocessor

    @classmethod
    def from_transformers(cls, directory, sequence_length, **kwargs):
        """Make a preprocessor from the T5 tokenizer in a `transformers` directory.

        Args:
            directory: str or path. Holds `spiece.model`; its `tokenizer_config.json`, if there is
                one, tells the number of sentinel ids behind the vocabulary (`extra_ids`, 100).
            sequence_length: int. Number of tokens in a row.
            **kwargs: further arguments of the constructor.
        """
        tokenizer, vocabulary_size = load_transformers_tokenizer(directory)
        kwargs.setdefault("vocabulary_size", vocabulary_size)
        return cls(tokenizer, sequence_length, **kwargs)

    def _ids(self, name, values):
        return to_token_ids(name, values, self.tokenizer, vocabulary_size=self.vocabulary_size)

    def _rows(self, x):
        conditions = None
        if isinstance(x, dict):
            if "token_ids" in x:
                return self._ready_rows(x)
            if "target" not in x or set(x) - {"target", "condition"}:
                raise ValueError(
                    "`x` as a dict must have the keys 'target' and, for conditional text, "
                    f"'condition'; or {list(TOKEN_KEYS)}. Received keys: {sorted(map(str, x))}"
                )
            conditions, x = x.get("condition"), x["target"]
        return encode_texts(
            x,
            self.tokenizer,
            self.sequence_length,
            conditions=conditions,
            condition_length=self.condition_length,
            pad_with=self.pad_with,
            add_end_token=self.add_end_token,
            vocabulary_size=self.vocabulary_size,
        )

    def _ready_rows(self, rows):
        if {*rows, "segments"} != set(TOKEN_KEYS):
            raise ValueError(
                f"Ready rows must have the keys {list(TOKEN_KEYS)}, of which 'segments' may be "
                f"left out. Received: {sorted(rows)}"
            )
        shapes = {key: tuple(value.shape) for key, value in rows.items()}
        if any(len(s) != 2 or s[1] != self.sequence_length for s in shapes.values()):
            raise ValueError(
                f"Ready rows must have the shape (rows, {self.sequence_length}). Received: {shapes}"
            )
        if isinstance(rows["token_ids"], np.ndarray):  # the others may be symbolic
            check_token_ids(rows["token_ids"], self.vocabulary_size)
        return rows
