"""Ledgers and answers to text: rows/ decides what is shown, the rest how."""
