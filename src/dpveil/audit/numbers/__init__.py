"""How queries and naive Bayes are audited: columns and tables of few records, gates, mutants."""
