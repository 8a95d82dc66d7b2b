"""`save_to_preset` and `from_preset` of the models, on top of keras_hub's."""

import os

import keras

from keras_elf import checks, denoiser
from keras_elf.models.quantization import quantizable_layers
from keras_elf.presets import bundled, loading, preset_directory, safety, saving
from keras_elf.presets.resolution import local_directory
from keras_elf.training.averages import averaged_weights

_NO_SIZES = ("dtype", "name", "trainable", "dropout", "attention_dropout")


def _same(preset_dir, source):
    """Whether a preset is saved to where its encoder is still to be loaded from."""
    directory = getattr(source, "directory", None)
    if directory is None or not os.path.isdir(os.path.expanduser(os.fspath(preset_dir))):
        return False
    return os.path.samefile(os.path.expanduser(os.fspath(preset_dir)), directory)


class GeneratorPresets:
    """Mixin of `ELFGenerator`."""

    presets = bundled.Presets()

    def save_to_preset(self, preset_dir, max_shard_size=10, use_averages=True):
        """Save the model as a preset directory.

        Everything is written beside the target first and moved there when it is complete,
        so that a failure leaves what was there before. `keras_hub.upload_preset` publishes
        such a directory on a hub.

        Args:
            preset_dir: str or path. Made if missing; files of an earlier preset in it are
                replaced.
            max_shard_size: int or float. Largest weights file in GB. Defaults to `10`.
            use_averages: `True`, `False` or `"always"`. Whether to save the averaged weights
                where training kept some, as in `generate`. Defaults to `True`.

        Raises:
            ValueError: if the target cannot be written, or the class of a part is not
                registered or has no configuration.
        """
        own = {id(layer) for layer in quantizable_layers(self.backbone)}
        other = [x.path for x in self._flatten_layers() if x.quantization_mode and id(x) not in own]
        if other:
            raise ValueError(
                "Only a quantised backbone can be saved as a preset (`quantize` of the generator). "
                f"Received a model whose other layers are quantised: {other}"
            )
        denoiser.ensure_built(self.backbone)
        saving.check_saveable(self.backbone, "The network")
        saving.check_saveable(self, "The model")
        deferred = self.latent_encoder.deferred
        source = getattr(deferred, "source", None)
        if deferred is not None and (source is None or _same(preset_dir, source)):
            # What the encoder would be loaded from is about to be replaced.
            self.latent_encoder.load_encoder()
        with preset_directory.written_whole(preset_dir) as beside:
            with self.latent_encoder.left_unloaded():
                safety.check_room(beside, self.variables, getattr(source, "bytes", 0))
            with averaged_weights(self, use_averages):
                saving.save_model(self, beside, max_shard_size)

    def save_task_weights(self, filepath):
        """Save the weights that are not in the backbone; no optimizer state."""
        keras.saving.save_weights(self, filepath, objects_to_skip=self._not_task_weights())

    def load_task_weights(self, filepath):
        """Load what `save_task_weights` saved."""
        keras.saving.load_weights(self, filepath, objects_to_skip=self._not_task_weights())

    def _not_task_weights(self):
        # keras_hub would write the optimizer, twice the size of the model, into each preset.
        skipped = list(self.backbone._flatten_layers())
        skipped.append(self.validated_weights)
        return skipped if self.optimizer is None else [*skipped, self.optimizer]

    @classmethod
    def from_preset(cls, preset, load_weights=True, revision=None, weights="ema", **kwargs):
        """Load a model from a preset.

        A frozen encoder is loaded when it is needed: by `fit`, by a condition, by whoever
        asks for `encoder` or for all variables. Until then `summary` says so, and a published
        model's encoder is not even downloaded.

        A name such as `"elf_b_owt"` (see `ELFGenerator.presets`) is the model that the
        authors released: its files are downloaded, converted and checked once, and kept
        below Keras's home directory; later calls need no network. With
        `load_weights=False` only the tokenizer's vocabulary is downloaded, and nothing
        where `preprocessor=None` is passed as well.

        Args:
            preset: str or path. A directory written by `save_to_preset`, a name, or a
                handle (`"hf://user/name"`, `"kaggle://..."`). A directory of that name
                comes before a name.
            load_weights: bool. `False` gives random weights. Defaults to `True`.
            revision: str. Branch, tag or commit on the hub, for names and `hf://`.
                Defaults to `None`, the newest.
            weights: `"ema"` or `"raw"`. For names: the averaged weights, or those that
                training ended with. Defaults to `"ema"`.
            **kwargs: constructor arguments that replace the saved ones (`sampler`,
                `num_steps`, ...), and `dtype`.

        Raises:
            ValueError: if the preset is missing, incomplete, damaged or holds another model.
            keras_elf.hub.HubError: (an `OSError`) if a download fails; it says what to do.
            TypeError: for unknown arguments.
        """
        tokenizer = kwargs.get("preprocessor", True) is True
        path = local_directory(preset, load_weights, tokenizer, revision, weights)
        if "://" in path:
            return super().from_preset(path, load_weights=load_weights, **kwargs)
        return loading.load_model(cls, path, load_weights, kwargs)


class BackbonePresets:
    """Mixin of `ELFBackbone`."""

    presets = bundled.Presets()

    def save_to_preset(self, preset_dir, max_shard_size=10):
        """Save the backbone as a preset directory, whole or not at all.

        Args:
            preset_dir: str or path. Made if missing.
            max_shard_size: int or float. Largest weights file in GB. Defaults to `10`.

        Raises:
            ValueError: if the target cannot be written.
        """
        saving.check_saveable(self, "The network")
        with preset_directory.written_whole(preset_dir) as beside:
            safety.check_room(beside, self.variables)
            super().save_to_preset(beside, max_shard_size=max_shard_size)
            saving.name_modules(beside)
            preset_directory.mark(beside)

    @classmethod
    def from_preset(cls, preset, load_weights=True, revision=None, weights="ema", **kwargs):
        """Load the backbone of a preset; see `ELFGenerator.from_preset`.

        Args:
            preset, load_weights, revision, weights: as there. No tokenizer is needed.
            **kwargs: constructor arguments that replace the saved ones, and `dtype`.
        """
        if load_weights:
            # Another depth would load the first blocks of the network and say nothing.
            checks.no_unknown(f"{cls.__name__}.from_preset with its weights", kwargs, _NO_SIZES)
        path = local_directory(preset, load_weights, False, revision, weights)
        if "://" in path:
            return super().from_preset(path, load_weights=load_weights, **kwargs)
        return loading.load_network(cls, path, load_weights, kwargs)
