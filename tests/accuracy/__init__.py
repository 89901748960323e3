"""Predictions held against published training runs. Run: python -m tests.accuracy"""
