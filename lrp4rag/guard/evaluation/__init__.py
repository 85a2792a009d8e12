"""Evaluation of a detector and a policy on labelled examples, and its comparison with an earlier one."""
