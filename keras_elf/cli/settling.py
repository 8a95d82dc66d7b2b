"""What a plan leaves open, settled by the amount and the length of the text."""

import dataclasses

from keras_elf.cli.plan import Plan

# Up to so many tokens the small network, in which a run takes minutes on two cores.
SMALL_TEXT = 2_000_000
# The pieces that latents of 64 dimensions tell apart easily.
FEW_PIECES = 512
_ENCODER_STEPS = (400, 2000)
# A step of the encoder costs a tenth of one of the network, and repays its time.
_ENCODER_SHARE = 2.5


def settle(plan: Plan, survey, vocabulary_size, say, lengths=None):
    """The plan with a packing, lengths, sizes, a batch and a number of epochs.

    Args:
        plan: `Plan`. What it says stays.
        survey: `keras_elf.data.survey.TextSurvey` of its data.
        vocabulary_size: int. Pieces of the tokenizer.
        say: callable that shows the user a line.
        lengths: `(sequence_length, condition_length)` of a preset, or `None`.

    Returns:
        `Plan`.
    """
    from keras_elf.training import default_batch_size, default_epochs

    fixed = plan.sequence_length if lengths is None else lengths[0]
    alone, why = survey.one_row_each(fixed)
    if plan.packing != "auto" and not survey.conditional:
        alone, why = plan.packing == "lines", f"--packing {plan.packing}"
    found = survey.row_lengths(not alone)
    if lengths is None:
        sequence_length = plan.sequence_length or found[0]
        condition_length = plan.condition_length
        if survey.conditional and condition_length is None:
            condition_length = min(found[1], max(1, sequence_length // 2))
            if plan.sequence_length is None:
                condition_length = found[1]
    else:
        sequence_length, condition_length = lengths
    how = (
        f"One text a row of {sequence_length} tokens"
        if alone
        else (f"Texts packed into rows of {sequence_length} tokens")
    )
    other = "" if survey.conditional else f"; --packing {'packed' if alone else 'lines'} changes it"
    say(f"{survey.num_texts:,} texts. {how}: {why}{other if plan.packing == 'auto' else ''}")
    rows = survey.num_rows(not alone, sequence_length)
    batch_size = plan.batch_size or default_batch_size(rows)
    epochs = plan.epochs or default_epochs(rows, batch_size)
    steps = epochs * max(1, rows // batch_size)
    small = survey.num_tokens <= SMALL_TEXT
    latent_dim = plan.latent_dim or (64 if small and vocabulary_size <= FEW_PIECES else 128)
    fewest, most = _ENCODER_STEPS
    return dataclasses.replace(
        plan,
        packing="lines" if alone else "packed",
        sequence_length=sequence_length if lengths is None else plan.sequence_length,
        condition_length=condition_length if lengths is None else plan.condition_length,
        batch_size=batch_size,
        epochs=epochs,
        latent_dim=latent_dim,
        bottleneck_dim=plan.bottleneck_dim or 64,
        hidden_size=plan.hidden_size or (128 if small else 256),
        depth=plan.depth or (4 if small else 6),
        encoder_steps=plan.encoder_steps or max(fewest, min(most, round(_ENCODER_SHARE * steps))),
    )
