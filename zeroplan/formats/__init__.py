"""The outside world to core records: one module per foreign format."""
