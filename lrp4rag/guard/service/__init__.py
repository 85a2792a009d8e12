"""The guardrail: a server between an application and its model, which lets out judged text only."""
