import pytest

from headwise.inspecting.machine_diagnosis import examine_machine
from headwise.language import use_language


def test_the_machine_is_described() -> None:
    findings = examine_machine()
    assert [finding.topic for finding in findings][:4] == [
        "headwise",
        "processor",
        "accelerator",
        "compiler",
    ]
    assert not [finding for finding in findings if finding.state == "damaged"]
    translating = next(finding for finding in findings if finding.topic == "translating on a CPU")
    assert "--precision auto: " in translating.text
    use_language("zh")
    assert "处理器" in [finding.topic for finding in examine_machine()]


def test_missing_extras_are_notes_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("headwise.inspecting.machine_diagnosis.find_compiler", lambda device: None)
    texts = {finding.topic: finding.text for finding in examine_machine()}
    assert "pip install headwise[plots]" in texts["matplotlib"]
    assert "install g++" in texts["compiler"]


def test_the_machine_says_what_keeps_translation_from_being_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "headwise.models.inference._refusal", lambda make, tolerance: "operator not found"
    )
    translating = next(
        finding for finding in examine_machine() if finding.topic == "translating on a CPU"
    )
    assert translating.state == "note"
    assert "oneDNN cannot be used here (operator not found)" in translating.text
    assert "; use --precision fp32" in translating.text
