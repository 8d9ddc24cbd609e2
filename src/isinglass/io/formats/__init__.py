"""Text formats of models, evidence, results and sentences, and what their readers share."""
