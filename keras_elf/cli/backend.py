"""What training programs tell the backend before they start."""


def prepare(seed):
    """Seed Python, NumPy and Keras; keep PyTorch on CPUs from computing with denormal numbers."""
    import keras

    # Keras seeds TensorFlow too where it is installed; its notices are held back here.
    from keras_elf.keras_hub_quietly import keras_hub  # noqa: F401

    keras.utils.set_random_seed(seed)
    if keras.backend.backend() == "torch":
        import torch

        # Tiny activations turn denormal on CPUs and stall steps by a factor of ten.
        torch.set_flush_denormal(True)
