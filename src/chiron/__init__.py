"""Finds, generates and deploys the cheapest OpenFaaS deployment that meets a latency SLO."""
