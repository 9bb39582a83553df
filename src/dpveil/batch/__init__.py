"""Releasing many photos: selection, order, and reruns. Prints nothing and never exits the process."""
