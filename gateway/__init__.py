"""The embedded OpenFaaS-compatible gateway: functions as local processes."""
