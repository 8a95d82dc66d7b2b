"""`generate`, `infill`, `encode`, `decode`, `reconstruct`: what a model does with text."""

import warnings

import numpy as np
from keras import ops

from keras_elf import checks
from keras_elf.data import cut_at_end, strip_prefix
from keras_elf.data.holes import filled_text, hole_rows
from keras_elf.models.conditions import condition_rows, signal_rows, warn_of_condition
from keras_elf.models.text_writer import BATCH_SIZE, TextWriter
from keras_elf.training.averages import averaged_values
from keras_elf.training.inputs import to_rows
from keras_elf.training.turns import turns


class Writing:
    """Methods of `ELFGenerator`. They need its `backbone`, `latent_encoder`, `objective`,
    `preprocessor`, `sampling` and `sequence_length`, and change none of them."""

    _writer = None

    def reset_generation(self):
        """Forget the compiled functions. Needed only to free their memory."""
        self._writer = None

    def generate(
        self,
        inputs=None,
        num_samples=None,
        *,
        num_steps=None,
        sampler=None,
        guidance=None,
        guidance_scale=None,
        self_cond_guidance_scale=None,
        signals=None,
        seed=None,
        batch_size=None,
        length=None,
        callback=None,
        verbose=True,
        return_token_ids=False,
        use_averages=True,
    ):
        """Write text.

        N steps cost N + 1 forward passes of the network, 2N + 1 with guidance on the
        condition (run as one doubled batch a step). A sample depends on the seed, its
        number and its condition alone, not on `batch_size` or its neighbours.

        Args:
            inputs: conditions, one text each: str, list of str or lists of token ids.
                `None` for unconditional text.
            num_samples: int. How many unconditional texts. Defaults to `1`.
            num_steps: int. Steps. Defaults to the model's.
            sampler: a `keras_elf.samplers.Sampler` or its name: `"ode"`, `"sde"`, `"heun"`,
                `"multistep"`. Defaults to the model's.
            guidance: list of `keras_elf.guidance.Guidance`, in place of the two scales.
                Defaults to the model's.
            guidance_scale: guidance on the condition: a number, one a text, or a function of
                t; 1 is none. Defaults to the model's.
            self_cond_guidance_scale: the same for self-conditioning. Defaults to the model's.
            signals: dict of further values that the network reads, such as `{"label": 3}`: a
                number for all texts, or one a text.
            seed: int or `None`. The same seed gives the same texts; `None` differs between
                calls.
            batch_size: int. Texts sampled at once. Defaults to `32`.
            length: int. Tokens of a sequence, condition included. Defaults to the model's.
            callback: called after each step with a `keras_elf.samplers.SamplingState`.
            verbose: bool. Whether a progress bar is shown in a terminal.
            return_token_ids: bool. Whether to return ids in place of text.
            use_averages: `True` for averaged weights where training kept some and at least
                half of them comes from training steps, else raw ones; `"always"` for averages
                that have moved at all; `False` for raw weights. Defaults to `True`.

        Returns:
            list of str (a str where `inputs` is a str). Without a preprocessor or with
            `return_token_ids=True` an int32 array `(texts, length)`: the condition taken
            off, cut at the end token where there is a preprocessor, padded with the pad
            token (0 without a preprocessor).

        Raises:
            ValueError: for arguments out of range, an empty list or condition, or ids
                outside the vocabulary.

        Source: ELF, arXiv 2605.10938 (sampling).
        """
        config = self.sampling.updated(
            num_steps=num_steps,
            sampler=sampler,
            guidance=guidance,
            guidance_scale=guidance_scale,
            self_cond_guidance_scale=self_cond_guidance_scale,
        )
        length, rows, total = self._length(length), None, num_samples
        if inputs is not None:
            warn_of_condition(self)
            rows = condition_rows(self, inputs, num_samples, length)
            total = len(rows["token_ids"])
        elif num_samples is not None:
            total = checks.integer("num_samples", num_samples, minimum=1)
        signals, total = signal_rows(self.backbone, signals, total)
        with turns(self).looking():
            ids = self._text_writer().write(
                config,
                length,
                total,
                rows,
                signals,
                seed,
                batch_size,
                callback,
                verbose,
                averaged_values(self, use_averages),
            )
        return self._texts(ids, rows, return_token_ids, single=isinstance(inputs, str))

    def check_sampling(
        self, inputs=None, num_samples=None, *, signals=None, length=None, **options
    ):
        """Raise what `generate` would raise for its arguments of these names, and write nothing.

        Args:
            inputs, num_samples, signals, length: as in `generate`.
            **options: `num_steps`, `sampler`, `guidance`, `guidance_scale` and
                `self_cond_guidance_scale`, as in `generate`.
        """
        self.sampling.updated(**options)
        length = self._length(length)
        if inputs is not None:
            num_samples = len(condition_rows(self, inputs, num_samples, length)["token_ids"])
        signal_rows(self.backbone, signals, num_samples)

    def infill(
        self,
        inputs,
        *,
        num_steps=None,
        sampler=None,
        guidance=None,
        guidance_scale=None,
        self_cond_guidance_scale=None,
        seed=None,
        batch_size=None,
        callback=None,
        verbose=True,
        return_token_ids=False,
        use_averages=True,
    ):
        """Fill the holes of texts: `elf.infill("The <mask:8> of the LORD")`.

        What is given is pinned, wherever it stands, and its tokens come back unchanged; so
        are the end of the text and the padding behind it. Given tokens are encoded without
        sight of the holes.

        Published ELF was trained with conditions at the start of a row, or with none: text
        given in other places is outside of what it has seen. Measured on a small model of
        verses, in whose training nothing was given: of holes of three tokens in the middle of
        verses it found 6 % of the tokens again, where draws by frequency find 1.3 %.

        Args:
            inputs: str or list of str. `<mask:8>` is a hole of eight tokens, `<mask>` of
                one. Blanks count: in `un<mask>able` the hole is the middle of a word.
            num_steps, sampler, guidance, guidance_scale, self_cond_guidance_scale, seed,
                batch_size, callback, verbose, use_averages: as in `generate`.
            return_token_ids: bool. Whether to return ids in place of text.

        Returns:
            list of str (a str where `inputs` is one), or an int32 array `(texts, length)`
            with everything that was given.

        Raises:
            ValueError: without a preprocessor, for texts without a hole or too long for a
                row, and as in `generate`.
        """
        self._require_preprocessor("infill")
        config = self.sampling.updated(
            num_steps=num_steps,
            sampler=sampler,
            guidance=guidance,
            guidance_scale=guidance_scale,
            self_cond_guidance_scale=self_cond_guidance_scale,
        )
        texts, length = _listed(inputs), self._length(None)
        tokenizer = self.preprocessor.tokenizer
        rows, _ = hole_rows(texts, tokenizer, length, self.preprocessor.vocabulary_size)
        with turns(self).looking():
            ids = self._text_writer().write(
                config,
                length,
                len(texts),
                rows,
                None,
                seed,
                batch_size,
                callback,
                verbose,
                averaged_values(self, use_averages),
            )
        ids = np.where(rows["is_cond"], rows["token_ids"], ids)
        if return_token_ids:
            return ids
        found = [
            filled_text(text, row, given, tokenizer)
            for text, row, given in zip(texts, ids, rows["is_cond"], strict=True)
        ]
        return found[0] if isinstance(inputs, str) else found

    def encode(self, inputs, batch_size=None, use_averages=True):
        """Clean latents of texts, as training and `decode` know them.

        Args:
            inputs: str, list of str, or rows as the preprocessor makes them.
            batch_size: int. Texts encoded at once. Defaults to `32`.
            use_averages: bool. For an encoder that is trained along: whether to use its
                averaged weights.

        Returns:
            float32 NumPy `(texts, length, latent_dim)`, standardised by `latent_mean` and
            `latent_std`; padding included.

        Raises:
            ValueError: for text without a preprocessor, and as in `fit`.
        """
        rows = self._text_rows(inputs)
        with turns(self).looking():
            values, writer = averaged_values(self, use_averages), self._text_writer()
            return np.concatenate(
                [
                    ops.convert_to_numpy(writer.encode(part, values))[:kept]
                    for part, kept in _batches(rows, batch_size)
                ]
            )

    def decode(self, latents, batch_size=None, return_token_ids=False, use_averages=True):
        """Texts that the network reads off clean latents at t = 1.

        Args:
            latents: float array `(texts, length, latent_dim)`, as from `encode`.
            batch_size: int. Texts decoded at once. Defaults to `32`.
            return_token_ids: bool. Whether to return ids in place of text.
            use_averages: as in `generate`.

        Returns:
            list of str, or int32 NumPy `(texts, length)`.

        Raises:
            ValueError: for latents of another shape, or that are not finite.
        """
        latents = np.asarray(ops.convert_to_numpy(latents), "float32")
        if latents.ndim != 3 or latents.shape[-1] != self.backbone.latent_dim or not latents.size:
            raise ValueError(
                f"`latents` must be (texts, length, latent_dim={self.backbone.latent_dim}). "
                f"Received shape: {latents.shape}"
            )
        if not np.isfinite(latents).all():
            raise ValueError("`latents` must be finite. Received some that are NaN or infinite")
        return self._texts(self._read(latents, batch_size, use_averages), None, return_token_ids)

    def reconstruct(self, inputs, batch_size=None, return_accuracy=False, use_averages=True):
        """Texts encoded and read back: how much the latent space can hold.

        A model can write no better than this. Where the accuracy is low, the encoder's
        latents of different words lie too close: give it more width or more training.

        Args:
            inputs: str, list of str, or rows as the preprocessor makes them.
            batch_size: int. Texts at once. Defaults to `32`.
            return_accuracy: bool. Whether to return the share of tokens that came back, and
                not the texts. Padding and conditions do not count.
            use_averages: as in `generate`.

        Returns:
            list of str (a str where `inputs` is one), or a float in [0, 1].
        """
        rows = self._text_rows(inputs)
        with turns(self).looking():
            latents = self.encode(rows, batch_size, use_averages)
            # As they were read: nothing is cut at an end token, which may stand in a condition.
            ids = self._read(latents, batch_size, use_averages)
        counts = np.asarray(rows["is_valid"]) & ~np.asarray(rows["is_cond"])
        if return_accuracy:
            given = np.asarray(rows["token_ids"])
            return float((ids == given)[counts].mean()) if counts.any() else float("nan")
        return self._texts(ids, rows, False, single=isinstance(inputs, str))

    def _read(self, latents, batch_size, use_averages):
        """Ids of whole rows that the network reads off clean latents."""
        with turns(self).looking():
            values, engine = averaged_values(self, use_averages), self._text_writer().engine
            values = None if values is None else values(self.backbone.variables)
            return np.concatenate(
                [
                    engine.decode(self.sampling, part["z"], [0] * len(part["z"]), None, values)[
                        :kept
                    ]
                    for part, kept in _batches({"z": latents}, batch_size)
                ]
            )

    def _text_writer(self):
        parts = self.backbone, self.latent_encoder, self.objective, self.run_eagerly
        if self._writer is None or not self._writer.is_of(*parts):
            self._writer = TextWriter(*parts)
        return self._writer

    def _length(self, length):
        if length is None:
            length = self.sequence_length
            if length is None:
                raise ValueError("`length` must be given: this model has no `sequence_length`.")
        length = checks.integer("length", length, minimum=1)
        if self.sequence_length is not None and length != self.sequence_length:
            longer = length > self.sequence_length
            warnings.warn(
                f"`length` is {length}, and the model was trained on rows of "
                f"{self.sequence_length} tokens: "
                + ("what lies behind them is guesswork" if longer else "texts will be cut"),
                UserWarning,
                stacklevel=3,
            )
        return length

    def _text_rows(self, inputs):
        return to_rows(self, [inputs] if isinstance(inputs, str) else inputs)

    def _require_preprocessor(self, method):
        if self.preprocessor is None:
            raise ValueError(f"`{method}` needs a preprocessor: this model knows token ids alone.")

    def _texts(self, ids, rows, return_token_ids, single=False):
        is_cond = None if rows is None else np.asarray(rows["is_cond"])
        if self.preprocessor is not None and not return_token_ids:
            texts = self.preprocessor.generate_postprocess(ids, is_cond)
            return texts[0] if single else texts
        pad = self.pad_token_id or 0
        if is_cond is not None:
            ids = strip_prefix(ids, is_cond.sum(axis=1), pad)
        if self.preprocessor is not None:
            ids = cut_at_end(ids, self.preprocessor.end_token_id, pad)
        return ids


def _listed(inputs):
    texts = [inputs] if isinstance(inputs, str) else list(inputs)
    if not texts:
        raise ValueError("`inputs` must hold at least one text. Received: an empty list")
    return texts


def _batches(rows, batch_size):
    """Pairs `(rows of one batch, how many of them count)`; the last one is filled up."""
    total = len(next(iter(rows.values())))
    size = BATCH_SIZE if batch_size is None else batch_size
    size = min(checks.integer("batch_size", size, minimum=1), total)
    for start in range(0, total, size):
        taken = [min(i, total - 1) for i in range(start, start + size)]
        yield {k: np.asarray(v)[taken] for k, v in rows.items()}, min(size, total - start)
