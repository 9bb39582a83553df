"""Video: clips are analysed once, each track is drawn once, and frames are rendered from what was drawn."""
