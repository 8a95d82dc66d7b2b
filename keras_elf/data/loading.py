"""One call from a name, a file or an iterable to batches for `fit`."""

import os
import warnings

from keras_elf import checks
from keras_elf.data.dataset import TextDataset
from keras_elf.data.encode import check_trained, special_token_ids, warn_if_cut
from keras_elf.data.packing import PackedRows, PairRows
from keras_elf.data.rows import PAD_WITH, TOKEN_KEYS, check_lengths
from keras_elf.data.sources import open_source
from keras_elf.data.sources.fields import Fields
from keras_elf.data.tokenizing import tokenized


def load_dataset(
    spec,
    tokenizer,
    sequence_length=None,
    *,
    batch_size=32,
    split="train",
    target="auto",
    condition="auto",
    values=(),
    condition_length=None,
    packing="auto",
    segments=False,
    keep_remainder=False,
    pad_with=None,
    add_end_token=None,
    vocabulary_size=None,
    seed=0,
    shuffle=True,
    drop_remainder=True,
    shard=(0, 1),
    max_examples=None,
    unit="line",
    data_dir=None,
    cache_dir=None,
    **kwargs,
):
    """Load text as batches of token ids, for `ELFGenerator.fit` on every backend.

    The text is tokenized once, when this is called; with `cache_dir` once for all, and then
    mapped from disk, so that a corpus need not fit the memory. Without conditions, documents are
    packed into full rows; with conditions each text has a row of its own.

    Args:
        spec: what to load.
            - `"tfds:NAME"`, such as `"tfds:wmt14_translate/de-en"`, `"tfds:xsum"`,
              `"tfds:lm1b"`, or the directory of any TFDS builder. Without `"tfds:"` where the
              name is one of these.
            - a file, glob pattern or list of files: `.jsonl`, `.json`, `.txt`, `.csv`, `.tsv`,
              also with `.gz`, `.xz`, `.bz2` or `.zst`; `.tar` archives of `.txt` files,
              OpenWebText's own among them.
            - an Arrow directory, as `datasets` writes it with `save_to_disk`.
            - an iterable of str, of token ids, or of dicts of them.
        tokenizer: a `keras_hub.tokenizers.Tokenizer`, or an `ELFPreprocessor`, whose lengths and
            padding are then the defaults here.
        sequence_length: int. Number of tokens in a row. Defaults to `None`: the preprocessor's.
        batch_size: int. Rows in a batch of this process. Defaults to `32`.
        split: str. Split of a TFDS data set (also a part: `"train[:1%]"`) or of a divided Arrow
            directory. Defaults to `"train"`.
        target: str. Field with the text to learn. Defaults to `"auto"`: by the usual names.
        condition: str or `None`. Field with what it depends on. Defaults to `"auto"`: by the
            usual names; `None` trains without conditions.
        values: list of str. Fields with a whole number for each text, such as a class, which
            batches hold under the same names: what the network's `signals` read. There is no
            packing then. Defaults to `()`.
        condition_length: int. Most tokens of a condition. Defaults to `None`: the
            preprocessor's, or all of a row but one.
        packing: bool or `"auto"`. Whether documents are packed into full rows, an end token
            between. Defaults to `"auto"`: where there are no conditions.
        segments: bool. Whether batches have `segments`, an int32 array that numbers the
            documents of packed rows, with which an attention mask can keep them apart. Defaults
            to `False`.
        keep_remainder: bool. Whether the last packed row, if not full, is padded and kept.
            Defaults to `False`.
        pad_with: `"pad"` or `"end"`. The token that fills up a row. Defaults to `None`: the
            preprocessor's, or `"pad"`.
        add_end_token: bool. Whether an end token follows each target that was not cut. Packing
            needs it. Defaults to `None`: the preprocessor's, or `True`.
        vocabulary_size: int. Ids outside `[0, vocabulary_size)` are refused. Defaults to `None`:
            the preprocessor's, or the tokenizer's.
        seed: int. Seed of the orders. Defaults to `0`.
        shuffle: bool. Whether each epoch has a new order of the rows. Defaults to `True`.
        drop_remainder: bool. Whether rows that do not fill a batch are left out of the epoch, so
            that all batches have one shape. Defaults to `True`.
        shard: tuple `(index, count)`. The part of this process among several. Defaults to
            `(0, 1)`.
        max_examples: int. Read no more than so many texts. Defaults to `None`: all.
        unit: `"line"`, `"paragraph"` or `"file"`. What a document of plain text is. Defaults to
            `"line"`.
        data_dir: str or path. Where TFDS data sets lie. Defaults to `None`:
            `~/tensorflow_datasets`.
        cache_dir: str or path. Where tokens are kept, by the contents of text and tokenizer.
            Defaults to `None`: in memory, 2 to 4 bytes a token.
        **kwargs: `workers`, `use_multiprocessing` and `max_queue_size` of
            `keras.utils.PyDataset`.

    Returns:
        `keras_elf.data.TextDataset`: batches are dicts of `token_ids` (int32), `is_cond` and
        `is_valid` (bool), `(batch_size, sequence_length)`, and of `values` (int32),
        `(batch_size,)`.

    Warns:
        UserWarning: with the number of texts that were cut, or left out because they are blank.

    Raises:
        ValueError: with the place (file and line, example), for anything that cannot be read as
            meant: broken UTF-8 or JSON, missing or empty fields, ids out of range, and others.

    Example:

    ```python
    data = keras_elf.data.load_dataset("pairs.jsonl", elf.preprocessor, condition="question",
                                       target="answer", batch_size=64, cache_dir="~/.cache/elf")
    elf.fit(data, epochs=5, shuffle=False)
    ```

    Source: ELF, arXiv 2605.10938 (training data: packed rows of OpenWebText, pairs of WMT14
    German-English and XSum).
    """
    checks.no_unknown("load_dataset", kwargs, ("workers", "use_multiprocessing", "max_queue_size"))
    given = {
        "sequence_length": sequence_length,
        "condition_length": condition_length,
        "pad_with": pad_with,
        "add_end_token": add_end_token,
        "vocabulary_size": vocabulary_size,
    }
    tokenizer, layout = _layout(tokenizer, given)
    vocabulary_size = layout.pop("vocabulary_size")
    checks.integer("batch_size", batch_size, minimum=1)
    checks.choice("packing", packing, ("auto", True, False))
    if max_examples is not None:
        checks.integer("max_examples", max_examples, minimum=1)
    if cache_dir is not None and os.path.isfile(os.path.expanduser(os.fspath(cache_dir))):
        raise ValueError(f"`cache_dir` must be a directory. Received a file: {cache_dir!r}")
    fields = Fields(target, condition, values)
    taken = sorted(set(fields.values) & set(TOKEN_KEYS))
    if taken:
        raise ValueError(f"`values` must have other names than the tokens' own. Received: {taken}")
    source = open_source(spec, fields, split=split, data_dir=data_dir, unit=unit)
    packed = _is_packed(packing, fields, source)
    if packed and not layout["add_end_token"]:
        raise ValueError(
            "`add_end_token` must be True for `packing`, which puts it between documents."
        )
    if segments and not packed:
        raise ValueError("`segments` tells packed documents apart: `packing` must be True.")
    store = tokenized(
        source,
        fields,
        tokenizer,
        vocabulary_size=vocabulary_size,
        add_end=packed,
        max_examples=max_examples,
        cache_dir=cache_dir,
    )
    if store.skipped:
        warnings.warn(f"{store.skipped} blank entries were left out.", UserWarning, stacklevel=2)
    if packed:
        fill_id = layout["pad_id"] if layout["pad_with"] == "pad" else layout["end_id"]
        length = layout["sequence_length"]
        rows = PackedRows(store.target, length, fill_id, keep_remainder, segments)
        if not len(rows):
            raise ValueError(
                f"`spec` has fewer tokens ({len(store.target.tokens)}) than one packed row "
                f"(`sequence_length={length}`). Use more text, shorter rows, "
                "`keep_remainder=True` or `packing=False`."
            )
    else:
        rows = PairRows(store.target, store.condition, store.values, **layout)
        lengths = layout["sequence_length"], layout["condition_length"]
        warn_if_cut(rows.number_cut(), len(rows), *lengths)
    return TextDataset(
        rows,
        batch_size,
        seed=seed,
        shuffle=shuffle,
        drop_remainder=drop_remainder,
        shard=shard,
        **kwargs,
    )


def _layout(tokenizer, given):
    """The tokenizer, and how rows are laid out: as given, else as the preprocessor has it."""
    preprocessor = None
    if hasattr(tokenizer, "generate_preprocess"):
        preprocessor, tokenizer = tokenizer, tokenizer.tokenizer
    if not hasattr(tokenizer, "tokenize"):
        raise ValueError(
            "`tokenizer` must be a keras_hub tokenizer or an ELFPreprocessor. "
            f"Received: {tokenizer!r:.80}"
        )
    check_trained(tokenizer)
    defaults = {
        "sequence_length": None,
        "condition_length": None,
        "pad_with": "pad",
        "add_end_token": True,
        "vocabulary_size": int(tokenizer.vocabulary_size()),
    }
    layout = {
        name: getattr(preprocessor, name, default) if given[name] is None else given[name]
        for name, default in defaults.items()
    }
    if layout["sequence_length"] is None:
        raise ValueError("`sequence_length` must be given along with a tokenizer.")
    layout["sequence_length"], layout["condition_length"] = check_lengths(
        layout["sequence_length"], layout["condition_length"]
    )
    checks.choice("pad_with", layout["pad_with"], PAD_WITH)
    checks.integer("vocabulary_size", layout["vocabulary_size"], minimum=1)
    layout["pad_id"], layout["end_id"] = special_token_ids(tokenizer)
    return tokenizer, layout


def _is_packed(packing, fields, source):
    """Whether documents are packed; looks at the first record where fields are still open."""
    if "auto" in (fields.target, fields.condition):
        first = source.peek()
        if first is not None:
            fields.pick(*first)
    is_conditional = fields.condition not in (None, "auto")
    if packing is True and is_conditional:
        raise ValueError(
            "`packing` leaves no place for conditions. Use `packing=False`, or `condition=None` to "
            f"train without {fields.condition!r}."
        )
    if packing is True and fields.values:
        raise ValueError(
            f"`packing` puts several texts into a row, which has no place for `values` "
            f"{list(fields.values)} of each. Use `packing=False`."
        )
    return not (is_conditional or fields.values) if packing == "auto" else packing
