"""Command lines that change a usual one: an option with one value is refused when it is given twice."""

SEVERAL = ("--regions", "--post-processing")


def last(*words):
    """Return the words with the last value alone of every option that takes one.

    >>> last("--epsilon", "2", "--block", "8", "--epsilon", "3")
    ['--block', '8', '--epsilon', '3']
    """
    kept, left = [], list(words)
    while left:
        word = left.pop(0)
        pair = [word, left.pop(0)] if word.startswith("--") and left and left[0][:2] != "--" else [word]
        if len(pair) == 1 or word in SEVERAL or word not in left:
            kept += pair
    return kept
