"""Draft and verify: the next tokens are guessed cheaply, and the model checks several guesses in
one pass.
"""
