"""The audits of pixel methods: one file each, with its versions, mutants and settings."""
