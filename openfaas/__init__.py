"""What a client of OpenFaaS needs: the REST API, its credentials and stack.yaml."""
