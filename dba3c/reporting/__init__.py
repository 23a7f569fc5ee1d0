"""What kept logs say: groups of runs as tables, figures and pages."""
