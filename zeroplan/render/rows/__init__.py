"""The only place that decides rows, columns, labels and order of every screen."""
