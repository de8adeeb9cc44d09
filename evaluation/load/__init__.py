"""Sends many requests at once: closed loop and open loop, with one client for every planner."""
