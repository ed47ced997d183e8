"""Stands in for torch, which SkyRL's JAX backend imports and does not use."""
