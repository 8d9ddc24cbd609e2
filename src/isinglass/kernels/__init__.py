"""The inner loops of inference: arrays in, arrays out; no policy, no validation."""
