"""How a search chooses among next tokens: greedy search, beam search, sampling."""
