"""Parts of `benchmarks/gpu_check.py`: each takes a `Plan` and returns what goes into the JSON."""
