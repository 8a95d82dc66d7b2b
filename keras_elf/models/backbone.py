"""The ELF network up to its hidden states, with the two heads it owns."""

import functools
import warnings

import keras

from keras_elf import checks
from keras_elf.keras_hub_quietly import keras_hub
from keras_elf.layers import (
    BottleneckTextProj,
    ContextPrefix,
    DenoisingHead,
    ELFBlock,
    SelfConditioningProj,
    TiedUnembedding,
)
from keras_elf.layers.parts import register_parts
from keras_elf.layers.signal_sequence import deserialize_signals, serialize_signals
from keras_elf.models.architectures import architecture, parameter_count
from keras_elf.models.keras_tools import NotCloned
from keras_elf.models.lora import LowRankAdaptation
from keras_elf.models.preset_methods import BackbonePresets
from keras_elf.models.quantization import Quantization
from keras_elf.models.rematerialization import rematerialized


@keras.saving.register_keras_serializable(package="keras_elf")
class ELFBackbone(
    BackbonePresets, Quantization, LowRankAdaptation, NotCloned, keras_hub.models.Backbone
):
    """The transformer that carries noise to clean latents and reads tokens off them.

    The functional graph takes a dict and ends at the hidden states of the text:

    - `"z"`: float `(batch, length, latent_dim)`, noisy latents;
    - `"self_condition"`: float, same shape, the network's earlier prediction, or zeros;
    - `"t"`: float `(batch,)`, flow time in [0, 1];
    - `"guidance_scale"`: float `(batch,)`, self-conditioning guidance scale w (left out of
      the dict when `num_guidance_tokens=0`);
    - `"decode"`: float `(batch,)`, 1 for rows in decode mode, 0 in denoise mode;
    - one `(batch,)` for each extra value of `context_signals`, by its name, such as
      `"label"`; `None` stands for no value. Without such signals there is no such input.

    It returns `(batch, length, hidden_size)`. `denoising_head` turns hidden states into
    predicted clean latents and `unembedding` turns them into logits; callers apply them to
    the rows that need them, so that vocabulary-wide logits are never made to be dropped.
    `hidden_states` is the same computation as a method with optional parts.

    Example:

    ```python
    backbone = keras_elf.ELFBackbone(vocabulary_size=2048, latent_dim=128, depth=6,
                                     hidden_size=256, num_heads=4)
    h = backbone.hidden_states(z, t=0.3, self_condition=x_previous, guidance_scale=3.0)
    x = backbone.denoising_head(h)
    ```

    Args:
        vocabulary_size: int. Number of token logits V.
        latent_dim: int. Width D of the text encoder's latents.
        depth: int. Number of blocks.
        hidden_size: int. Width H of the transformer.
        num_heads: int. Heads; must divide `hidden_size` into even sizes.
        mlp_ratio: float. See `SwiGLU`. Defaults to `4.0`.
        bottleneck_dim: int. See `BottleneckTextProj`. Defaults to `128`.
        num_time_tokens: int. Defaults to `4`.
        num_guidance_tokens: int. `0` builds a network without a guidance input, whose
            self-conditioning guidance costs a second forward pass. Defaults to `4`.
        num_mode_tokens: int. Defaults to `4`.
        context_signals: list of `ContextSignal` in place of those that the three numbers
            make, see `ContextPrefix`; the numbers are then read from it. Defaults to `None`.
        dropout: float. Dropout of the middle half of the blocks, `depth // 4` to
            `depth // 4 * 3`: of none where there are fewer than four. Defaults to `0.0`.
        attention_dropout: float. The same for attention weights. Defaults to `0.0`.
        tied_to: an embedding layer or text encoder of width `latent_dim` whose table is
            the unembedding matrix, see `TiedUnembedding`. Defaults to `None`, a matrix of
            its own as in the released weights.
        rematerialize: bool. Whether training keeps only the inputs of the blocks and
            computes the inside of each again for its gradient: less memory for one more
            forward pass. Blocks with dropout are left out. Defaults to `False`.
        dtype: dtype policy of the blocks' products. The flow arithmetic, the projections of
            latents, the context tokens, the residual stream and both heads are float32 under
            each.

    Raises:
        ValueError: for sizes out of range, heads that do not divide the width, an odd
            head size or a tied table that does not fit.
        TypeError: for unknown arguments.

    Source: ELF, arXiv 2605.10938 (network, table of model sizes).
    """

    def __init__(
        self,
        vocabulary_size,
        latent_dim,
        depth,
        hidden_size,
        num_heads,
        mlp_ratio=4.0,
        bottleneck_dim=128,
        num_time_tokens=4,
        num_guidance_tokens=4,
        num_mode_tokens=4,
        dropout=0.0,
        attention_dropout=0.0,
        tied_to=None,
        rematerialize=False,
        dtype=None,
        context_signals=None,
        **kwargs,
    ):
        checks.no_unknown("ELFBackbone", kwargs, ("name", "trainable"))
        vocabulary_size = checks.integer("vocabulary_size", vocabulary_size, minimum=1)
        depth = checks.integer("depth", depth, minimum=1)
        hidden_size = checks.integer("hidden_size", hidden_size, minimum=1)
        num_heads = checks.integer("num_heads", num_heads, minimum=1)
        dropout = checks.probability("dropout", dropout)
        attention_dropout = checks.probability("attention_dropout", attention_dropout)
        latent_dim = checks.integer("latent_dim", latent_dim, minimum=1)

        # === Layers ===
        # What comes from latents and times is read in float32: 8 bits tell neighbours on the
        # path no longer apart.
        exact = {"dtype": "float32"}
        self_cond_proj = SelfConditioningProj(latent_dim, **exact, name="self_cond_proj")
        text_proj = BottleneckTextProj(hidden_size, bottleneck_dim, **exact, name="text_proj")
        prefix = ContextPrefix(
            hidden_size,
            num_time_tokens,
            num_guidance_tokens,
            num_mode_tokens,
            context_signals,
            **exact,
            name="context_prefix",
        )
        if depth < 4 and (dropout or attention_dropout):
            warnings.warn(
                f"Dropout acts in the middle half of the blocks, and with depth={depth} there are "
                "none: it does nothing. Use 4 blocks or more.",
                UserWarning,
                stacklevel=3,
            )
        blocks = []
        for i in range(depth):
            middle = depth // 4 <= i < depth // 4 * 3
            blocks.append(
                ELFBlock(
                    hidden_size,
                    num_heads,
                    mlp_ratio,
                    dropout=dropout if middle else 0.0,
                    attention_dropout=attention_dropout if middle else 0.0,
                    dtype=dtype,
                    name=f"blocks_{i}",
                )
            )
        unembedding = TiedUnembedding(
            vocabulary_size, latent_dim, tied_to, **exact, name="unembedding"
        )

        # === Functional Model ===
        inputs = {
            "z": keras.Input((None, latent_dim), dtype="float32", name="z"),
            "self_condition": keras.Input(
                (None, latent_dim), dtype="float32", name="self_condition"
            ),
            "t": keras.Input((), dtype="float32", name="t"),
            "decode": keras.Input((), dtype="float32", name="decode"),
        }
        if prefix.num_guidance_tokens:
            inputs["guidance_scale"] = keras.Input((), dtype="float32", name="guidance_scale")
        extra = _extra_inputs(prefix.signals, inputs)
        parts = self_cond_proj, text_proj, prefix, blocks
        outputs = _hidden_states(parts, **inputs, signals=extra)
        inputs |= extra
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)

        # Layers outside the graph are tracked on every backend only when set from here on.
        self.self_cond_proj, self.text_proj, self.context_prefix = self_cond_proj, text_proj, prefix
        self.blocks = blocks
        self.denoising_head = DenoisingHead(latent_dim, **exact, name="denoising_head")
        self.unembedding = unembedding
        # All variables exist from here on, whatever mode runs first.
        self.denoising_head.build((None, None, hidden_size))
        self.unembedding.build((None, None, hidden_size))
        register_parts(self)

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.latent_dim = latent_dim
        self.depth = depth
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.mlp_ratio = mlp_ratio
        self.bottleneck_dim = bottleneck_dim
        self.num_time_tokens = prefix.num_time_tokens
        self.num_guidance_tokens = prefix.num_guidance_tokens
        self.num_mode_tokens = prefix.num_mode_tokens
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.tied_to = tied_to
        self.rematerialize = bool(rematerialize)

    parameter_count = staticmethod(parameter_count)

    @classmethod
    def from_architecture(cls, name, /, **overrides):
        """A backbone of a published size: `"elf_b"`, `"elf_m"` or `"elf_l"`.

        Args:
            name: str. The size.
            **overrides: any constructor argument, such as `vocabulary_size` or `dtype`.
        """
        return cls(**{**architecture(name), **overrides})

    @property
    def takes_guidance_scale(self):
        """Whether the network is told the self-conditioning guidance scale."""
        return self.num_guidance_tokens > 0

    @property
    def signals(self):
        """Dict from the name of each extra value, such as `"label"`, to the value for none."""
        return self.context_prefix.signals.extra()

    def check_signals(self, values):
        """Raise `ValueError` for extra values that their signals refuse.

        Args:
            values: dict from names in `signals` to NumPy arrays `(rows,)`.
        """
        for name, value in values.items():
            self.context_prefix.signals[name].rows(value)

    def hidden_states(
        self,
        z,
        t,
        self_condition=None,
        guidance_scale=None,
        decode=0.0,
        attention_mask=None,
        training=False,
        signals=None,
    ):
        """Hidden states of the text tokens.

        Args:
            z: float tensor `(batch, length, latent_dim)`. Noisy latents.
            t: float tensor `(batch,)` or scalar. Flow time.
            self_condition: tensor like `z`, or `None` to leave the joining Dense out.
            guidance_scale: tensor `(batch,)` or scalar; `None` leaves its tokens out.
            decode: tensor `(batch,)`, scalar or number: the mode gate.
            attention_mask: bool tensor `(batch, length)`, the keys that may be seen;
                `None` for all, as in training.
            training: bool. Whether dropout is active.
            signals: dict from the names in `signals` of this network to the values, `(batch,)`
                or scalar. Those left out count as none. Defaults to `None`.

        Returns:
            float32 tensor `(batch, length, hidden_size)`.

        Raises:
            ValueError: if the latents are not `latent_dim` wide, or for values that no signal
                reads or that a signal refuses, see `ContextPrefix`.
        """
        if z.shape[-1] != self.latent_dim:
            raise ValueError(
                f"`z` must have latent_dim={self.latent_dim} as its last axis. "
                f"Received shape: {tuple(z.shape)}"
            )
        parts = self.self_cond_proj, self.text_proj, self.context_prefix, self.blocks
        options = attention_mask, training, self.rematerialize and training, signals
        return _hidden_states(parts, z, t, self_condition, guidance_scale, decode, *options)

    def get_config(self):
        tied, quantization = self.tied_to, self._quantization_record()
        return {
            # Not keras_hub's own: its record of quantised layers knows some of them only.
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "vocabulary_size": self.vocabulary_size,
            "latent_dim": self.latent_dim,
            "depth": self.depth,
            "hidden_size": self.hidden_size,
            "num_heads": self.num_heads,
            "mlp_ratio": self.mlp_ratio,
            "bottleneck_dim": self.bottleneck_dim,
            "num_time_tokens": self.num_time_tokens,
            "num_guidance_tokens": self.num_guidance_tokens,
            "num_mode_tokens": self.num_mode_tokens,
            **self._context_record(),
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "tied_to": None if tied is None else keras.saving.serialize_keras_object(tied),
            "rematerialize": self.rematerialize,
            **({} if quantization is None else {"quantization": quantization}),
        }

    def _context_record(self):
        # Left out of the published networks, whose configurations older versions read.
        prefix = self.context_prefix
        return {"context_signals": serialize_signals(prefix.signals)} if prefix.custom else {}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        config["context_signals"] = deserialize_signals(config.get("context_signals"))
        quantization = config.pop("quantization", None)
        if isinstance(config.get("tied_to"), dict):
            config["tied_to"] = keras.saving.deserialize_keras_object(config["tied_to"])
        backbone = super().from_config(config)
        # Before any weights are loaded: those of a quantised network are integers.
        backbone._restore_quantization(quantization)
        return backbone


def _extra_inputs(signals, taken):
    """Inputs of the graph for the extra values, which may be `None`."""
    keys = signals.extra()
    if set(keys) & set(taken):
        raise ValueError(
            f"`context_signals` must read other names than the network's own inputs "
            f"{sorted(taken)}. Received: {sorted(set(keys) & set(taken))}"
        )
    return {
        key: keras.Input((), dtype=signals[key].value_dtype, name=key, optional=True)
        for key in keys
    }


def _hidden_states(
    parts,
    z,
    t,
    self_condition=None,
    guidance_scale=None,
    decode=0.0,
    attention_mask=None,
    training=None,
    remat=False,
    signals=None,
):
    """The one path through the network, symbolic in the graph and eager in the method."""
    self_cond_proj, text_proj, context_prefix, blocks = parts
    x = text_proj(self_cond_proj(z, self_condition))
    x, prefix_length = context_prefix(
        x, t, guidance_scale=guidance_scale, decode=decode, signals=signals
    )
    options = {
        "prefix_length": prefix_length,
        "attention_mask": attention_mask,
        "training": training,
    }
    for block in blocks:
        call = functools.partial(block, **options)
        # A block run again for its gradient would draw another dropout.
        x = rematerialized(call)(x) if remat and not block.draws else call(x)
    return x[:, prefix_length:]
