"""zeroplan's ledgers held against real frameworks on the CPU; what was measured is in results.json."""
