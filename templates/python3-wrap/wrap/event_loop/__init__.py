"""What a wrap runs on: its event loop, its threads, and who notices that either stands still."""
