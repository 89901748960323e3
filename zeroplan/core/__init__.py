"""Pure arithmetic on records: the standard library only, no files, no printing."""
