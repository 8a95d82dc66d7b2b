"""What `fit` needs around the training step."""
