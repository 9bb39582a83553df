"""From a photo to a release: plan, draw, certify, save; and the meaning of a guarantee."""
