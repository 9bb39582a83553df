"""Cards of data sets in Croissant: what the releases of a folder promise, each by itself and per person."""
