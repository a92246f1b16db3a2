"""Emitters that hold in both dialects, by family."""
