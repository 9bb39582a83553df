"""How scalar mechanisms are audited: settings, distributions by definition, gates, mutants."""
