"""Low-rank adaptation of the backbone, and files that hold the adapters alone."""

import os
import tempfile

from keras_elf import checks

SUFFIX = ".lora.h5"


def check_optimizer(model):
    """Raise `ValueError` if the optimizer of a model was built for other variables.

    LoRA and quantisation replace variables, and freezing takes some away: an optimizer that has
    been built before would train the old ones.

    Args:
        model: `keras.Model`.
    """
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None or not optimizer.built:
        return
    known = {id(v) for v in optimizer._trainable_variables}
    now = {id(v): v.path for v in model.trainable_variables}
    if known != set(now):
        new = [path for key, path in now.items() if key not in known]
        more = f"; {len(new)} are new, {new[0]} first" if new else ""
        raise ValueError(
            "The optimizer was built for other variables than the model now trains "
            f"({len(known)}, now {len(now)}{more}), as LoRA, quantisation or freezing came after "
            "`compile`. Call `compile` again, then `fit`. Averages that the optimizer kept are "
            "lost then: to keep them, save a preset before such a change and load it"
        )


class LowRankAdaptation:
    """Mixin of `ELFBackbone`: LoRA on its Dense layers, on top of keras_hub's."""

    def default_lora_layer_names(self):
        """Names of the layers that `enable_lora` adapts unless told otherwise."""
        return ["qkv", "proj"]

    def enable_lora(self, rank, target_layer_names=None):
        """Add trainable low-rank matrices to Dense layers and freeze all other weights.

        Enable it before `compile`, or compile anew: an optimizer that has been built knows
        the old weights. `save_to_preset` writes kernels with the averaged adapters merged,
        `save_lora_weights` the adapters alone. A `.keras` file holds the present adapters
        merged, without averages and state of the optimizer, which Keras cannot load again.

        Args:
            rank: int. Width of the adapters.
            target_layer_names: list of str. Names of the layers to adapt, such as `"qkv"`,
                `"proj"`, `"w12"`, `"w3"`. Defaults to `default_lora_layer_names()`: the
                projections of attention and those called `proj` in front of and behind the
                blocks. A tied encoder is never adapted.

        Raises:
            ValueError: for a rank below 1, names that no layer has, or LoRA enabled before.

        Source: LoRA, arXiv 2106.09685.
        """
        rank = checks.integer("rank", rank, minimum=1)
        names = target_layer_names
        names = self.default_lora_layer_names() if names is None else list(names)
        if getattr(self, "_lora_enabled_layers", None):
            raise ValueError("LoRA is enabled already. Load the model again to start over.")
        encoder = () if self.tied_to is None else self.tied_to._flatten_layers()
        encoder = {id(layer) for layer in encoder}
        # The same numbering as keras_hub's, whose files name layers by it.
        layers = [layer for layer in self._flatten_layers(include_self=False) if layer.weights]
        able = {
            index: layer
            for index, layer in enumerate(layers)
            if hasattr(layer, "enable_lora") and id(layer) not in encoder
        }
        unknown = sorted(set(names) - {layer.name for layer in able.values()})
        if unknown or not names:
            raise ValueError(
                f"`target_layer_names` must be of {sorted({x.name for x in able.values()})}. "
                f"Received: {names}"
            )
        self.trainable = True
        for layer in layers:
            layer.trainable = False
        self._lora_rank = rank
        self._lora_enabled_layers = []
        for index, layer in able.items():
            if layer.name in names:
                layer.trainable = True
                layer.enable_lora(rank)
                if getattr(layer, "bias", None) is not None:
                    # A file of adapters does not hold it: what it learns would be lost.
                    layer.bias.trainable = False
                self._lora_enabled_layers.append(index)

    def save_lora_weights(self, filepath):
        """Save the adapters alone: 2 MB for ELF-B at rank 8.

        Args:
            filepath: str or path that ends in `.lora.h5`. The file appears when complete.

        Raises:
            ValueError: without LoRA, for another ending, or if it cannot be written.
        """
        target = os.path.abspath(os.fspath(filepath))
        if not target.endswith(SUFFIX):
            raise ValueError(f"`filepath` must end in '{SUFFIX}'. Received: {filepath!r}")
        try:
            number, beside = tempfile.mkstemp(SUFFIX, ".", os.path.dirname(target))
            os.close(number)
        except OSError as error:
            raise ValueError(f"`filepath` cannot be written: {target!r} ({error})") from error
        try:
            super().save_lora_weights(beside)
            os.chmod(beside, 0o644)  # mkstemp makes files that only their owner can read
            os.replace(beside, target)
        finally:
            if os.path.exists(beside):
                os.remove(beside)

    def load_lora_weights(self, filepath):
        """Load adapters onto the weights they were trained on; enables LoRA if need be.

        Args:
            filepath: str or path of a file that `save_lora_weights` wrote. Adapters of other
                layers than the default ones need `enable_lora` with their names first.

        Raises:
            ValueError: if the file is missing, is none of adapters, or does not fit.
        """
        filepath = os.fspath(filepath)
        if not os.path.isfile(filepath):
            raise ValueError(f"`filepath` must be a file of adapters. Received: {filepath!r}")
        try:
            super().load_lora_weights(filepath)
        except (KeyError, OSError, ValueError) as error:
            raise ValueError(
                f"The adapters in {filepath!r} do not fit this network, or were made for other "
                f"layers than those adapted here, or the file is damaged: {error}"
            ) from error
