"""Bit sources and exact samplers. No privacy claim is made here."""
