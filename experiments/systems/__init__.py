"""Systems that people would compare with: each has a file and a line in the registry."""
