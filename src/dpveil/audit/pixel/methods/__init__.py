"""How each method is audited: one file each, with its versions, its mutants and its settings."""
