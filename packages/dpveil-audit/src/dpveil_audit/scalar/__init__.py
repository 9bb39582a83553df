"""Audits of scalar mechanisms: settings, laws by definition, gates, mutants."""
