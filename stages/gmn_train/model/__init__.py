"""The model: selective scan, convolution, bidirectional Mamba, token encoders, and GMN built from them."""
