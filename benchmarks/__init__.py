"""What keras_elf costs, measured as ratios within one run: `python -m benchmarks --help`."""
