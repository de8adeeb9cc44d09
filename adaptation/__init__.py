"""Keeps a deployed workflow at its SLO: notices drift, plans anew, switches without loss."""
