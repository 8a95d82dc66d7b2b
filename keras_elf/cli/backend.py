"""What training programs tell the backend before they start."""


def prepare(seed):
    """Seed Python, NumPy and Keras; keep PyTorch on CPUs from computing with denormal numbers."""
    import keras

    keras.utils.set_random_seed(seed)
    if keras.backend.backend() == "torch":
        import torch

        # Tiny activations turn denormal on CPUs and stall steps by a factor of ten.
        torch.set_flush_denormal(True)
