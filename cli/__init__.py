"""The command chiron: one verb, one file."""
