"""The basis of a wrap: its event loop, its threads, and checks that both are alive."""
