"""What the deployment says of this wrap: its spec, its settings, its sandbox."""
