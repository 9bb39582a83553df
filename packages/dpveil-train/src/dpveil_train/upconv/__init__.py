"""Training of `upconv`: people as rows of a table, and a generator that makes their faces."""
