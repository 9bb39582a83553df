"""Private statistics and learning over scalar mechanisms: numbers instead of photos."""
