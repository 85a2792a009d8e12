"""A week of a guardrail, simulated: what its alerts, its drift report and its list for reviewers tell."""
