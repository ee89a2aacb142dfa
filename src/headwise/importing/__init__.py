"""Imports trained models of other programs as bundles: Marian and OPUS-MT translators."""
