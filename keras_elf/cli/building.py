"""The model that a plan trains: a preset, a preset's sizes, or one made for the text."""

import dataclasses
import itertools
import json

from keras_elf.cli import run_directory
from keras_elf.cli.files import write_text
from keras_elf.cli.plan import Plan
from keras_elf.cli.settling import settle

# Enough for the pieces of a vocabulary; a corpus may be larger than the memory.
_MAX_SENTENCES = 200_000
_SECONDS_BETWEEN_SAVES = 120


def new_model(plan: Plan, say, folder, verbose=0):
    """An `ELFGenerator` with preprocessor, ready to be compiled.

    Args:
        plan: `Plan`.
        say: callable that shows the user a line.
        folder: path of the run's directory. What was made of a text before an interrupt is in
            it, and is not made again.
        verbose: as in `keras.Model.fit`, for the training of a text encoder.

    Returns:
        `(model, plan)`: the plan with everything settled, which is in the directory too. The
        model is `None` after Ctrl-C, when what there is has been saved.
    """
    if plan.preset is None:
        return _for_text(plan, say, folder, verbose)
    model = _of_preset(plan, say)
    preprocessor = model.preprocessor
    if preprocessor is None:
        raise ValueError(f"{plan.preset} has no preprocessor: it cannot be trained on text")
    lengths = preprocessor.sequence_length, preprocessor.condition_length
    return model, _settled(plan, preprocessor.tokenizer, folder, say, lengths)


def _settled(plan, tokenizer, folder, say, lengths=None):
    """The plan with what it leaves open; kept in the directory of the run."""
    from keras_elf.data.survey import survey

    found = survey(_pairs(plan), tokenizer)
    plan = settle(plan, found, int(tokenizer.vocabulary_size()), say, lengths)
    write_text(folder / "plan.json", json.dumps(dataclasses.asdict(plan), indent=2))
    return plan


def _of_preset(plan, say):
    from keras_elf.models import ELFBackbone, ELFGenerator
    from keras_elf.presets import bundled

    settings = {"dtype": plan.dtype, "seed": plan.seed}
    published = plan.preset in bundled.directories() and not bundled.has_weights(plan.preset)
    if not plan.from_scratch or not published:
        say(f"Loading {plan.preset}")
        model = ELFGenerator.from_preset(plan.preset, **settings)
        _check_lengths(plan, model)
        if not plan.from_scratch:
            return model
        config = model.backbone.get_config()
        if model.backbone.tied_to is not None:
            raise ValueError("`from_scratch` cannot keep an encoder that the network is tied to")
        backbone = ELFBackbone.from_config(config)
        return ELFGenerator.from_config({**model.get_config(), **_parts(model, backbone)})
    from keras_elf.models import ELFPreprocessor

    say(f"A new network of the sizes of {plan.preset}, with the text encoder it has")
    lengths = {"sequence_length": plan.sequence_length, "condition_length": plan.condition_length}
    lengths = {name: value for name, value in lengths.items() if value is not None}
    preprocessor = ELFPreprocessor.from_preset(plan.preset, **lengths)
    return ELFGenerator.from_preset(
        plan.preset,
        load_weights=False,
        preprocessor=preprocessor,
        encoder=_pretrained_encoder(plan),
        sequence_length=preprocessor.sequence_length,
        **settings,
    )


def _parts(model, backbone):
    return {"backbone": backbone, "encoder": model.encoder, "preprocessor": model.preprocessor}


def _pretrained_encoder(plan):
    from keras_elf import hub
    from keras_elf.checkpoints.released_presets import ENCODER_FILES
    from keras_elf.encoders import T5Encoder
    from keras_elf.presets import bundled

    directory = plan.encoder
    if directory is None:
        repository = bundled.information(plan.preset)["encoder"]
        directory = hub.download(repository, ENCODER_FILES).path
    return T5Encoder.from_transformers(directory)


def _check_lengths(plan, model):
    wrong = {
        name: value
        for name, value in (
            ("sequence_length", plan.sequence_length),
            ("condition_length", plan.condition_length),
        )
        if value is not None and value != getattr(model.preprocessor, name, None)
    }
    if wrong:
        raise ValueError(
            f"{plan.preset} has lengths of its own, which its weights were trained for: leave out "
            f"{wrong}"
        )


def _for_text(plan, say, folder, verbose):
    """Tokenizer, encoder and network of the plan's sizes, the first two trained on the text."""
    from keras_elf import callbacks
    from keras_elf.encoders import TransformerEncoder
    from keras_elf.keras_hub_quietly import keras_hub
    from keras_elf.models import (
        ELFBackbone,
        ELFGenerator,
        ELFPreprocessor,
        conditional_settings,
    )
    from keras_elf.training import pretrain

    say(f"A tokenizer for {plan.data}")
    tokenizer = keras_hub.models.T5Tokenizer(
        proto=trained_vocabulary(plan, folder / "tokenizer.model")
    )
    vocabulary_size = tokenizer.vocabulary_size()
    plan = _settled(plan, tokenizer, folder, say)
    alone, conditional = plan.packing == "lines", plan.condition_length is not None
    preprocessor = ELFPreprocessor(
        tokenizer,
        sequence_length=plan.sequence_length,
        condition_length=plan.condition_length,
        # Where the model must say itself when it is done, it learns to.
        pad_with="end" if alone else "pad",
    )
    say(f"{vocabulary_size:,} pieces; a text encoder, {plan.encoder_steps} steps on masked tokens")
    encoder = TransformerEncoder(
        vocabulary_size, plan.latent_dim, plan.encoder_depth, num_heads=plan.num_heads
    )
    rows = load(plan, preprocessor, max_examples=plan.encoder_steps * plan.batch_size)
    count = min(plan.encoder_steps, len(rows)) * rows.batch_size
    rows = _first_rows(rows, count)
    epochs = max(1, round(plan.encoder_steps * plan.batch_size / count))
    checkpoint = callbacks.ResumableCheckpoint(
        folder / "encoder", every_seconds=_SECONDS_BETWEEN_SAVES, keep=1, resume=True
    )
    interrupt = callbacks.InterruptSafely(hint=run_directory.how_to_resume(folder))
    try:
        statistics = pretrain(
            encoder,
            rows,
            epochs=epochs,
            batch_size=plan.batch_size,
            seed=plan.seed,
            verbose=verbose,
            callbacks=[checkpoint, interrupt],
        )
    except KeyboardInterrupt:
        if interrupt.interrupted:
            return None, plan
        raise
    settings = {}
    if conditional:
        settings = conditional_settings()
        settings["label_drop_probability"] = plan.label_drop_probability
    model = ELFGenerator(
        ELFBackbone(
            vocabulary_size=vocabulary_size,
            latent_dim=plan.latent_dim,
            depth=plan.depth,
            hidden_size=plan.hidden_size,
            num_heads=plan.num_heads,
            bottleneck_dim=plan.bottleneck_dim,
            dtype=plan.dtype,
        ),
        encoder,
        preprocessor,
        latent_mean=statistics["latent_mean"],
        latent_std=statistics["latent_std"],
        num_steps=plan.num_steps,
        seed=plan.seed,
        **settings,
    )
    return model, plan


def check_data(plan):
    """Raise `ValueError` if a data set of a plan cannot be opened: before the work, not after."""
    from keras_elf.data.sources import open_source
    from keras_elf.data.sources.fields import Fields

    for spec in (plan.data, plan.validation):
        if spec is not None:
            fields = Fields(plan.target, plan.condition)
            first = open_source(spec, fields).peek()
            if first is None:
                raise ValueError(f"{spec} holds no text")
            fields.pick(*first)


def load(plan, preprocessor, spec=None, **kwargs):
    """`keras_elf.data.load_dataset` with the plan's fields, lengths and seed."""
    from keras_elf import data

    return data.load_dataset(
        plan.data if spec is None else spec,
        preprocessor,
        batch_size=plan.batch_size,
        target=plan.target,
        condition=plan.condition,
        seed=plan.seed,
        packing=plan.packing == "packed",
        **kwargs,
    )


def trained_vocabulary(plan, path):
    """A SentencePiece model of the text, kept at a path."""
    from keras_elf import data

    if path.is_file():
        return path.read_bytes()
    return data.train_sentencepiece(
        _texts(plan),
        plan.vocabulary_size,
        path,
        model_type=plan.tokenizer,
        max_sentences=_MAX_SENTENCES,
    )


def _texts(plan):
    """All texts of the data, conditions among them."""
    for text in itertools.chain.from_iterable(_pairs(plan)):
        if text is not None and not isinstance(text, str):
            raise ValueError(
                f"{plan.data} holds token ids: name the `preset` whose tokenizer they are"
            )
        if text and text.strip():
            yield text


def first_pairs(plan, count):
    """The first conditions of the data and what should follow them, lists; empty without."""
    first = list(itertools.islice(_pairs(plan), count))
    if not first or first[0][0] is None:
        return [], []
    conditions, targets = zip(*first, strict=True)
    return list(conditions), list(targets)


def _pairs(plan):
    """Condition or `None`, and target of each text."""
    from keras_elf.data.sources import open_source
    from keras_elf.data.sources.fields import Fields

    fields = Fields(plan.target, plan.condition)
    return (fields.pick(place, record) for place, record in open_source(plan.data, fields))


def _first_rows(rows, count):
    import numpy as np

    batches = [rows.batch_at(step) for step in range(max(1, count // rows.batch_size))]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
