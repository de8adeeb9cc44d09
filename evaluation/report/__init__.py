"""Tables, pictures and the HTML report of a run."""
