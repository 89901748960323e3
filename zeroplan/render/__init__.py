"""Ledgers and answers to text: rows.py and its siblings decide what is shown, the rest how."""
