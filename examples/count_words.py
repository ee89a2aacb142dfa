"""An n-gram language model by hand: count a text, smooth the counts, ask the two questions."""

from headwise.models.ngram import NgramModel, TokenStream, count_ngrams, estimate
from headwise.models.ngram.choices import AddK, KneserNey
from headwise.pocket import sentences
from headwise.tasks.language.language_model import LanguageModel
from headwise.text.word_tokenizer import learn_words

text = [sentence.text("en") for sentence in sentences("train", 2000, seed=0)]
tokenizer = learn_words(text, size=5000, min_count=1, lowercase=True)
stream = TokenStream.of_sentences(tokenizer.encode_batch(text))

for order in (1, 2, 3):
    counts = count_ngrams(stream, order=order, vocabulary=tokenizer.size)
    for smoothing in (AddK(), KneserNey()):
        model = LanguageModel(tokenizer, NgramModel(estimate(counts, smoothing)))
        valid = model.score_text(
            sentence.text("en") for sentence in sentences("valid", 200, seed=0)
        )
        print(f"order {order}, {smoothing.kind}: perplexity {valid.perplexity:.1f}")

right, wrong = model.score(["The dog is old.", "Dog the old. is"])
print("more natural:", max((right, wrong), key=lambda score: score.total).text)
print([prediction.text for prediction in model.predict("The dog is ____", count=3)])
