"""The contract of the pipeline: graph container, token store, configuration, errors, random numbers. No torch."""
