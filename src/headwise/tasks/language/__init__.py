"""Language models: n-grams, neural n-grams, recurrent networks and Transformers."""
