"""Where a head is in a photo, and how a released face takes its place."""
