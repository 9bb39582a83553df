"""What the pages of `attributes` and `gallery` say of measurements whose program is no longer kept."""

from __future__ import annotations

from kept_tables import kept_row, kept_rows, page

LEARNED = ("embedding", "embedding, parrot", "embedding, parrot that learns", "knows gallery and method")


def value(folder: str, setting: str, measure: str, end: str = "mean", data: str = "LFW") -> float:
    return float(kept_row(folder, data=data, setting=setting, measure=measure)[end])


def settings(folder: str) -> list[str]:
    return [one["setting"] for one in kept_rows(folder) if one["measure"] == "strongest"]


def test_no_attacker_is_better_than_one_who_is_told_what_is_kept() -> None:
    for setting in settings("attributes"):
        assert value("attributes", setting, "strongest minus told", "low") <= 0
        every = [value("attributes", setting, attack) for attack in LEARNED]
        assert value("attributes", setting, "strongest") == max(every)
    for setting in settings("gallery"):
        assert value("gallery", setting, "strongest") < value("gallery", "told", "told")
    none = kept_row("attributes", data="LFW", setting="none", measure="strongest")
    assert float(none["low"]) <= float(none["chance"]) <= float(none["high"])
    assert (round(100 * float(none["chance"]), 1), none["people"]) == (0.6, "158")


def test_faces_and_genders_are_kept_and_photos_themselves_are_recognised() -> None:
    for folder, setting in (("attributes", "gender=4,age=4"), ("gallery", "epsilon=8")):
        row = kept_row(folder, setting=setting, measure="face found")
        assert (float(row["mean"]), row["tries"]) == (1, "158")
        assert value(folder, "clean", "embedding") > 0.9  # the attacker is no straw man
    assert value("attributes", "every face", "face found", data="gallery") == 1
    eights = [
        s
        for s in settings("attributes")
        if s != "none" and sum(float(p.split("=")[1]) for p in s.split(",")) == 8
    ]
    assert len(eights) >= 4
    for data in ("LFW", "UTKFace"):
        clean = value("attributes", "clean", "gender agrees", data=data)
        assert all(value("attributes", s, "gender agrees", data=data) >= 0.85 * clean for s in eights)
    for law in ("exponential", "permute-and-flip"):
        for measure in ("gender agrees", "perceived-race agrees", "age agrees"):
            other = value("gallery", f"epsilon=8, {law}", measure)
            assert value("gallery", "epsilon=8", measure) > other + 0.05


def test_the_page_of_gallery_says_what_the_table_says() -> None:
    def said(setting: str, measure: str) -> str:
        mean, low, high = (
            f"{100 * value('gallery', setting, measure, end):.1f}" for end in ("mean", "low", "high")
        )
        return f"{mean} % ({low} to {high})"

    text = " ".join(page("methods/gallery").split())
    assert f"strongest attacker names {said('epsilon=8', 'strongest')}." in text
    assert f"race label and pose, names {said('told', 'told')}" in text
    at_1, at_2 = (said(f"epsilon={epsilon}", "strongest") for epsilon in (1, 2))
    assert f"At ε = 1 the strongest names {at_1}, at ε = 2 {at_2}, and chance is 0.6 %" in text
