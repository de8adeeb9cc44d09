"""Turns a plan into ordinary OpenFaaS functions, deploys and invokes them."""
