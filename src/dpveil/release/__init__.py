"""From a photo to a release: plan, draw, certify, save; and what a release or a method means."""
