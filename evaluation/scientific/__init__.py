"""The scientific workflows of FaaSFlow's evaluation, generated from facts of traces."""
