"""From a generated folder to functions that run: publish, deploy, invoke, measure."""
