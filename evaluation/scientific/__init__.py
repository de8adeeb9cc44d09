"""Scientific workflows as FaaSFlow evaluates them: facts of traces, made to run here."""
