"""Other libraries' conventions on top of ours: their objects in, their objects out."""
