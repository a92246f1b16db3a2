"""Emitters for Relax, by family."""
