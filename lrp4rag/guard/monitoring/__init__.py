"""Quality over time, from the audit log: windows that are compared, and answers for people to look at."""
