"""Features: attributes in windows, what words look like, schemes of labels."""

from hypothesis import given, settings
from hypothesis import strategies as st

from checks import refuses
from isinglass.features import to_bio, to_bioes, window_attributes, with_forms, word_form
from isinglass.metrics import spans

LABELS = st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"]), max_size=12)


@given(LABELS)
@settings(max_examples=60, deadline=None)
def test_schemes_keep_the_spans(labels):
    assert spans(to_bio(labels)) == spans(labels)
    fine = to_bioes(labels)
    assert spans(to_bio(fine)) == spans(labels)
    assert to_bioes(to_bio(fine)) == fine
    assert sum(label[0] in "BS" for label in fine) == len(spans(labels))


def test_what_words_look_like():
    assert [word_form("iPhone-7", form) for form in ("shape", "short-shape", "is-upper", "is-digit", "suffix9")] == [
        "xXxxxx-d", "xXx-d", "0", "0", "iPhone-7",
    ]  # fmt: skip
    assert word_form("42", "is-digit") == "1"
    assert list(with_forms({"w": ["A"], "t": ["N"]}, {"w": ["lower"]})) == ["w", "t", "w.lower"]
    for call, words in (
        (lambda: word_form("a", "lowr"), "did you mean 'lower'"),
        (lambda: word_form("a", "prefix0"), "prefix1 to suffix9"),
        (lambda: with_forms({"w": ["a"]}, {"v": ["lower"]}), "forms: expected names of columns"),
        (lambda: to_bio(["X-NP"]), "labels such as"),
    ):
        refuses(words, call)


def test_windows():
    found = window_attributes({"a": ["x", "y", "z"], "b": ["1", "2", "3"]}, {"a": [(-1, 1)], "b": [(0,), (3,)]})
    assert found == [
        ["a-1|1=<s>|y", "b0=1", "b3=</s>"],
        ["a-1|1=x|z", "b0=2", "b3=</s>"],
        ["a-1|1=y|</s>", "b0=3", "b3=</s>"],
    ]
    assert window_attributes({"a": ["x", "y"]}, {}) == [[], []]
    refuses("columns", window_attributes, {"a": ["x"], "b": []}, {"a": [(0,)]})
    refuses(r"names of columns \('a'\), got 'b'", window_attributes, {"a": ["x"]}, {"b": [(0,)]})
    refuses("whole offsets", window_attributes, {"a": ["x"]}, {"a": [("0",)]})
