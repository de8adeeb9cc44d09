"""The shared vocabulary: workflows, profiles, platforms and plans as validated data."""
