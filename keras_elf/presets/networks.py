"""What presets need of a network beyond its configuration: that its variables exist."""

from keras import ops


def ensure_built(network):
    """Call a network once where some of its layers have no variables yet.

    Networks of a user's own may make their variables at the first call. Weights can only be
    stored, and loaded, after it.
    """
    if all(layer.built for layer in network._flatten_layers()):
        return
    latents = ops.zeros((1, 2, network.latent_dim), "float32")
    one = ops.ones((1,), "float32")
    scale = one if getattr(network, "takes_guidance_scale", False) else None
    hidden = network.hidden_states(
        latents, one, self_condition=latents, guidance_scale=scale, decode=one
    )
    network.denoising_head(hidden)
    network.unembedding(hidden)
    # Called by its methods alone, it would never be told.
    network.built = True
