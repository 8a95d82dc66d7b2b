"""The signals of a context prefix in their order, and their configurations."""

import collections.abc

import keras

from keras_elf.layers.context_signal import ContextSignal

# The values that every network is given as arguments of their own.
GIVEN = ("t", "guidance_scale", "decode")


class SignalSequence(collections.abc.Sequence):
    """The signals of a prefix in order, by number or by `key`.

    Args:
        signals: list of `ContextSignal`.

    Raises:
        ValueError: for anything else, an empty list, or two signals that read one value.
    """

    def __init__(self, signals):
        wrong = not isinstance(signals, collections.abc.Sequence) or not len(signals)
        if wrong or not all(isinstance(signal, ContextSignal) for signal in signals):
            raise ValueError(
                "`signals` must be a list of ContextSignals, such as [TimeSignal(), ModeSignal()]. "
                f"Received: {signals!r:.200}"
            )
        keys = [signal.key for signal in signals]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ValueError(f"Each of `signals` must have a `key` of its own. Received: {keys}")
        self._signals = dict(zip(keys, signals, strict=True))

    def __getitem__(self, place):
        return self._signals[place] if place in self._signals else [*self._signals.values()][place]

    def __len__(self):
        return len(self._signals)

    def num_tokens(self, key):
        """Tokens of the signal that reads `key`, `0` if none does."""
        return self._signals[key].num_tokens if key in self._signals else 0

    def extra(self):
        """Dict from the names of the extra values to those that stand for none."""
        return {k: signal.empty for k, signal in self._signals.items() if k not in GIVEN}

    def check_given(self, guidance_scale, extra):
        """Raise `ValueError` for values that no signal reads."""
        if guidance_scale is not None and "guidance_scale" not in self._signals:
            raise ValueError(
                "`guidance_scale` was given, but this ContextPrefix has num_guidance_tokens=0. "
                "Pass guidance_scale=None or build the layer with guidance tokens."
            )
        unknown = sorted(set(extra or ()) - set(self.extra()))
        if unknown:
            raise ValueError(
                f"`signals` must be values of {sorted(self.extra())}, which this ContextPrefix "
                f"reads beside {list(GIVEN)}. Received: {unknown}"
            )


def serialize_signals(signals):
    """Configurations of signals, which say nothing of whether they have been built."""
    if signals is None:
        return None
    records = [keras.saving.serialize_keras_object(signal) for signal in signals]
    return [{k: v for k, v in record.items() if k != "build_config"} for record in records]


def deserialize_signals(records):
    """The signals of `serialize_signals`; a list of signals comes back as it is."""
    if records is None:
        return None
    return [
        keras.saving.deserialize_keras_object(record) if isinstance(record, dict) else record
        for record in records
    ]
