"""Recurrent models: translators and language models made of recurrent cells."""
