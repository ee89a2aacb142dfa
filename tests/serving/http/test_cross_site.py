"""Forms are taken from programs and from this server's own pages, not from pages of other sites."""

import pytest
from fastapi.testclient import TestClient

FORM = {"q": "I am.", "source": "en", "target": "de"}
OWN = {"Host": "localhost:8000", "Origin": "http://localhost:8000"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        (OWN, 200),
        ({**OWN, "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Host": "LOCALHOST:8000", "Origin": "https://localhost:8000"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({**OWN, "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "localhost:8000", "Origin": "http://localhost:9000"}, 403),
        ({"Host": "localhost:8000", "Origin": "http://localhost"}, 403),
        ({"Host": "localhost", "Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/translate", "/detect"])
def test_forms_of_other_sites_are_refused(
    client: TestClient, path: str, headers: dict[str, str], status: int
) -> None:
    """A page elsewhere may have a browser post a form here, and the work was done."""
    reply = client.post(path, data=FORM, headers=headers)
    assert reply.status_code == status
    assert status == 200 or "another site" in reply.json()["error"]


def test_json_is_guarded_by_the_browser_itself(client: TestClient) -> None:
    """Its question before a JSON post from another site is not answered with leave."""
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in client.options("/translate", headers=asked).headers
    assert client.post("/translate", json=FORM).status_code == 200
