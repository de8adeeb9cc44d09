"""The embedded OpenFaaS-compatible gateway: functions as processes or containers."""
