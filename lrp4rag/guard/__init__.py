"""The guardrail: policy, checks, service, audit log, monitoring, red team, adapters and cluster."""
