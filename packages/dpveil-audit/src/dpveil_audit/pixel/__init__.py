"""Audits of pixel methods: versions, small images, gates, and one file per method."""
