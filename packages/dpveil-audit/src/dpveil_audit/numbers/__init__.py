"""Audits of queries and naive Bayes: tables of a few records, gates, mutants."""
