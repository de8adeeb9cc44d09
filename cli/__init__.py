"""The command chiron: one verb, one file."""

import os

# Looking for pydantic's plugins, of which chiron uses none, takes a sixth of the time to begin.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
