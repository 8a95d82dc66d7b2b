"""Judges: causal language models of keras_hub that tell how likely a text is."""

import os

import numpy as np
from keras import ops

from keras_elf import checks
from keras_elf.evaluation.windows import bucket, counted, windows

DEFAULT_JUDGE = "gpt2_large_en"
_NETWORK_ERRORS = {"ConnectionError", "TimeoutError", "gaierror", "URLError", "HubError"}
_NETWORK_ERRORS |= {"LocalEntryNotFoundError", "OfflineModeIsEnabled"}
_NETWORK_LIBRARIES = {"requests", "urllib3", "httpx", "httpcore"}
_INPUTS = {"token_ids", "padding_mask"}


def load_judge(judge=DEFAULT_JUDGE, *, batch_size=8, max_length=None, dtype=None):
    """Make a causal language model of keras_hub the judge of texts.

    All functions that take a `judge` call this by themselves. Calling it once and passing the
    result on saves loading and compiling again.

    Args:
        judge: a preset name (`"gpt2_large_en"`, the published judge), a handle
            (`"hf://user/name"`), a local preset directory, or a `keras_hub.models.CausalLM` with
            a preprocessor. What this function returned is returned again, as it is. Defaults to
            `"gpt2_large_en"`, of 774 million parameters.
        batch_size: int. Texts scored at once. Each takes up to `context * vocabulary` float32
            logits, 0.2 GB for GPT-2. Defaults to `8`.
        max_length: int. Tokens of context. Defaults to the judge's `max_sequence_length`, or
            where it has no such bound to its preprocessor's `sequence_length`.
        dtype: str. Dtype that a preset is loaded in. Defaults to Keras's dtype policy.

    Returns:
        A judge with `token_ids(texts)` and `negative_log_likelihood(rows)`.

    Raises:
        ValueError: if it cannot be loaded, is not a causal language model on text alone, has no
            preprocessor, no vocabulary or no end token, or for values out of range.
        OSError: if it has to be fetched and its hub cannot be reached.
    """
    if isinstance(judge, Judge):
        return judge
    batch_size = checks.integer("batch_size", batch_size, minimum=1)
    if max_length is not None:
        max_length = checks.integer("max_length", max_length, minimum=2)
    from keras_elf.keras_hub_quietly import keras_hub

    name = None
    if isinstance(judge, (str, os.PathLike)):
        name = os.fspath(judge)
        options = {} if dtype is None else {"dtype": dtype}
        try:
            judge = keras_hub.models.CausalLM.from_preset(name, **options)
        except (ValueError, FileNotFoundError) as error:
            raise ValueError(
                "`judge` could not be loaded as a causal language model of keras_hub. Received: "
                f"{name!r}. {error}"
            ) from error
        except Exception as error:  # The clients of the hubs have errors of their own.
            if not _of_network(error):
                raise
            raise OSError(
                f"The judge {name!r}, which tells the perplexity, is not on this machine, and its "
                "hub cannot be reached. Evaluate without one (`judge=None`, in the command --judge "
                "none), name the directory of a keras_hub preset, or fetch it once where there is "
                f"a network. ({type(error).__name__})"
            ) from error
    if not isinstance(judge, keras_hub.models.CausalLM):
        raise ValueError(
            "`judge` must be a keras_hub.models.CausalLM, or the name, handle or directory of "
            f"its preset. Received: {judge!r:.100}"
        )
    return Judge(judge, name or judge.name, batch_size, max_length)


def _of_network(error):
    """Whether an error, or what it comes from, is one of connections."""
    while error is not None:
        names = {cls.__name__ for cls in type(error).__mro__}
        modules = {cls.__module__.split(".")[0] for cls in type(error).__mro__}
        if names & _NETWORK_ERRORS or modules & _NETWORK_LIBRARIES:
            return True
        error = error.__cause__ or error.__context__
    return False


class Judge:
    """A causal language model, its tokenizer, and one compiled function that scores tokens."""

    def __init__(self, model, name, batch_size, max_length):
        inputs = sorted(model.input) if isinstance(model.input, dict) else ["an unnamed input"]
        if set(inputs) != _INPUTS:
            raise ValueError(
                f"`judge` must take text alone, as {sorted(_INPUTS)}. Received: {name!r}, which "
                f"takes {inputs}"
            )
        tokenizer = getattr(model.preprocessor, "tokenizer", None)
        if tokenizer is None:
            raise ValueError(
                f"`judge` must have a preprocessor with a tokenizer. Received: {name!r} without"
            )
        if getattr(tokenizer, "vocabulary", True) is None:
            raise ValueError(f"`judge` {name!r} has a tokenizer without a vocabulary.")
        self.end_id = getattr(tokenizer, "end_token_id", None)
        if self.end_id is None:
            raise ValueError(
                f"`judge` {name!r} has a tokenizer without an end token, which closes each text "
                "that is scored. Choose another judge"
            )
        bound = getattr(model.backbone, "max_sequence_length", None)
        self.context = max_length or bound or model.preprocessor.sequence_length
        if bound is not None and self.context > bound:
            raise ValueError(
                f"`max_length` must be at most the judge's {bound} positions. Received: "
                f"{max_length}"
            )
        self.model, self.tokenizer = model, tokenizer
        self.name, self.batch_size = name, batch_size
        self.dtype = model.backbone.dtype_policy.name
        self.vocabulary_size = int(tokenizer.vocabulary_size())
        known = getattr(model.backbone, "vocabulary_size", None)
        if known is not None and self.vocabulary_size > known:
            raise ValueError(
                f"`judge` {name!r} knows {known} tokens, but its tokenizer has "
                f"{self.vocabulary_size}: they do not belong together"
            )
        self._score = None

    def token_ids(self, texts):
        """The texts under the judge's tokenizer, a list of lists of int, no tokens added."""
        ids = self.tokenizer.tokenize(list(texts))
        ids = ids.to_list() if hasattr(ids, "to_list") else ids
        return [[int(i) for i in row] for row in ids]

    def negative_log_likelihood(self, rows):
        """Summed negative log-likelihood of each text, and over how many tokens.

        An end token is put behind each text. All tokens but the first count, end tokens only
        once. The log-softmax is float32 whatever the judge computes in.

        Args:
            rows: lists of token ids, each of at least one token.

        Returns:
            `(nats, counts)`: arrays `(texts,)`, float64 and int64.

        Raises:
            ValueError: if the judge gives NaN or infinity.
        """
        rows = [np.asarray([*row, self.end_id], "int32") for row in rows]
        counts = [counted(row, self.end_id) for row in rows]
        parts = [(n, *w) for n, row in enumerate(rows) for w in windows(len(row), self.context)]
        lengths = [bucket(stop - start - 1, self.context) for _, start, _, stop in parts]
        nats = np.zeros(len(rows))
        for length in sorted(set(lengths)):
            same = [part for part, own in zip(parts, lengths, strict=True) if own == length]
            size = min(self.batch_size, 1 << (len(same) - 1).bit_length())
            for at in range(0, len(same), size):
                batch = same[at : at + size]
                losses = self._losses(rows, batch, size, length)
                for loss, (n, start, first, stop) in zip(losses, batch, strict=False):
                    scored = loss[first - start - 1 : stop - start - 1].astype("float64")
                    nats[n] += scored[counts[n][first:stop]].sum()
        if not np.isfinite(nats).all():
            bad = int(np.flatnonzero(~np.isfinite(nats))[0])
            raise ValueError(
                f"`judge` {self.name!r} gave {nats[bad]} as the log-likelihood of text {bad}, in "
                f"{self.dtype}. Load it in another dtype "
                "(`load_judge(..., dtype='float32')`), or check its weights"
            )
        return nats, np.array([c.sum() for c in counts])

    def describe(self):
        """What a report says of the judge."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "context": int(self.context),
            "vocabulary_size": self.vocabulary_size,
        }

    def _losses(self, rows, batch, size, length):
        ids, targets, mask = np.zeros((3, size, length), "int32")
        mask[:, 0] = 1  # Rows that only fill the batch see one token, as none gives NaN somewhere.
        for i, (n, start, _, stop) in enumerate(batch):
            part = rows[n][start:stop]
            width = len(part) - 1
            ids[i, :width], targets[i, :width], mask[i, :width] = part[:-1], part[1:], 1
        if self._score is None:
            self._score = _compiled_score(self.model)
        return ops.convert_to_numpy(self._score(ids, mask, targets))


def _compiled_score(model):
    from keras_elf.compiled import compiled

    def score(ids, mask, targets):
        logits = model({"token_ids": ids, "padding_mask": mask}, training=False)
        logits = ops.cast(logits, "float32")
        picked = ops.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        return ops.logsumexp(logits, axis=-1) - picked

    return compiled(score, model.variables)
