"""Audits of scalar mechanisms: settings, distributions by definition, gates, mutants."""
