"""Where model, data, loss, search and metric meet: recipes, runs, bundles, translators."""
