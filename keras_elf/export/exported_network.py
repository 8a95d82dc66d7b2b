"""The network as one pure function of arrays: both heads, no optional inputs."""

import keras

from keras_elf import checks, denoiser, flow
from keras_elf.objectives import ELFObjective

INPUTS = ("z", "self_condition", "t", "w", "gate")
OUTPUTS = ("x", "logits")


@keras.saving.register_keras_serializable(package="keras_elf")
class ExportedNetwork(keras.Model):
    """`(z, self_condition, t, w, gate) -> x, logits` at a fixed length, for export.

    All that sampling asks of the network, in one functional model over its own layers and
    weights:

    - `"z"`, `"self_condition"`: float32 `(batch, length, latent_dim)`, the noisy latents and
      the network's last prediction, or zeros;
    - `"t"`: float32 `(batch,)`, flow time in [0, 1];
    - `"w"`: float32 `(batch,)`, self-conditioning guidance scale (left out where the
      backbone has no guidance tokens);
    - `"gate"`: float32 `(batch,)`, 1 for rows in decode mode, 0 in denoise mode.

    It takes these as a dict and returns a dict of `"x"`, the predicted *clean* latents like
    `z` whatever the network predicts, and `"logits"`, float32 `(batch, length,
    vocabulary_size)`, of use where the gate is 1. Both heads are computed in each call.

    Args:
        backbone: the network, see `keras_elf.Denoiser`.
        length: int. Number of tokens. The batch stays open.
        objective: `ELFObjective` the backbone was trained with: what its head predicts and
            in which noise. Defaults to the published one, clean latents.

    Raises:
        ValueError: if the network lacks something or has signals, or the length is below 1.

    Source: ELF, arXiv 2605.10938 (network, shared-weight decoding).
    """

    def __init__(self, backbone, length, objective=None, name="denoiser", **kwargs):
        checks.no_unknown("ExportedNetwork", kwargs, ("trainable", "dtype"))
        denoiser.check_names(backbone)
        if denoiser.signals(backbone):
            raise ValueError(
                "Networks that read further values (signals) cannot be exported. Received one that "
                f"reads {sorted(denoiser.signals(backbone))}"
            )
        length = checks.integer("length", length, minimum=1)
        objective = ELFObjective() if objective is None else objective
        shape = (length, backbone.latent_dim)
        inputs = {
            key: keras.Input(shape if key in ("z", "self_condition") else (), name=key)
            for key in INPUTS
            if key != "w" or denoiser.takes_guidance_scale(backbone)
        }
        outputs = BothHeads(backbone, objective, name="both_heads")(**inputs)
        super().__init__(inputs=inputs, outputs=outputs, name=name, **kwargs)
        self.backbone, self.length, self.objective = backbone, length, objective

    def input_signature(self):
        """The inputs as `keras.InputSpec` by name, the form that `export` takes."""
        return [
            {
                key: keras.InputSpec(shape=value.shape, dtype="float32", name=key)
                for key, value in self._inputs_struct.items()
            }
        ]

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            "backbone": serialize(self.backbone),
            "length": self.length,
            "objective": serialize(self.objective),
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        for key in ("backbone", "objective"):
            config[key] = keras.saving.deserialize_keras_object(config[key], custom_objects)
        return cls(**config)


class BothHeads(keras.layers.Layer):
    """All that is asked of a network, as a layer, whose body may see a batch of unknown size."""

    def __init__(self, network, objective, **kwargs):
        super().__init__(dtype="float32", **kwargs)
        self.network, self.objective = network, objective
        self.built = True

    def call(self, z, self_condition, t, gate, w=None):
        o, network = self.objective, self.network
        hidden = denoiser.hidden_states(network, z, t, self_condition, w, gate)
        output = network.denoising_head(hidden)
        x = flow.predicted_clean(output, z, t, o.prediction, o.noise_scale, o.min_time_gap)
        return {"x": x, "logits": network.unembedding(hidden)}

    def compute_output_spec(self, z, *args, **kwargs):
        logits = (*z.shape[:2], self.network.vocabulary_size)
        return {
            "x": keras.KerasTensor(z.shape, dtype="float32"),
            "logits": keras.KerasTensor(logits, dtype="float32"),
        }
