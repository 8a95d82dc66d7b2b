"""What a sampler must know beside the exported network, as plain JSON."""

from keras_elf import denoiser, flow

VERSION = 1


def sampling_settings(model, length):
    """Sizes, flow constants and default sampling settings of a model.

    Args:
        model: `ELFGenerator`, or `ELFBackbone`: then the flow's constants are the published
            ones, the special ids `None` and there are no sampling defaults.
        length: int. Tokens of the exported network.

    Returns:
        dict of JSON values: `version`, `length`, `latent_dim`, `vocabulary_size`,
        `has_guidance_input` (whether the network takes `w`), `noise_scale`,
        `min_time_gap`, `prediction` (what the network was trained to predict; the exported
        `x` is clean latents in each case), `latent_mean`, `latent_std`, `pad_token_id`,
        `end_token_id`, and `sampling`: `None` or a dict of `sampler` (a registered name or
        class), its settings, `num_steps`, `guidance_scale`, `self_cond_guidance_scale`.
    """
    backbone = getattr(model, "backbone", model)
    settings = {
        "version": VERSION,
        "length": length,
        "latent_dim": backbone.latent_dim,
        "vocabulary_size": backbone.vocabulary_size,
        "has_guidance_input": denoiser.takes_guidance_scale(backbone),
        "noise_scale": flow.NOISE_SCALE,
        "min_time_gap": flow.MIN_TIME_GAP,
        "prediction": "x",
        "latent_mean": None,
        "latent_std": None,
        "pad_token_id": None,
        "end_token_id": None,
        "sampling": None,
    }
    if model is backbone:
        return settings
    objective, preprocessor = model.objective, model.preprocessor
    for name in ("noise_scale", "min_time_gap", "prediction"):
        settings[name] = getattr(objective, name)
    for name in ("latent_mean", "latent_std"):
        settings[name] = getattr(model.latent_encoder, name)
    if preprocessor is not None and preprocessor.trained:
        settings["pad_token_id"] = int(preprocessor.pad_token_id)
        settings["end_token_id"] = int(preprocessor.end_token_id)
    report = model.sampling.report()
    settings["sampling"] = {**report.pop("sampler_config"), **report}
    return settings
