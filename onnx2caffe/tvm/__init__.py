"""The TVM exit: canonical model → program → (in another Python) Relay or Relax module. Nothing here imports TVM."""
