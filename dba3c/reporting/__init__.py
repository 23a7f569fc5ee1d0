"""Reports on runs, from their logs: groups of runs as tables, figures and pages."""
