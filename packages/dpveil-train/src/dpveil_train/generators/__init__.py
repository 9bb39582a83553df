"""Training of neural codecs: faces to codes and back, with losses that make noisy codes faces, too."""
