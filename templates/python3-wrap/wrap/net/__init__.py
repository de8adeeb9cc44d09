"""Messages to other wraps: framing, handshake, connections, stores."""
