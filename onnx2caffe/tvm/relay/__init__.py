"""Emitters for Relay, by family."""
